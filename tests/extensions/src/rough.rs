//! An extension that fails at one place in one way, both chosen by its config.

use std::error::Error as StdError;
use std::fmt;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use goondan::event::{EventHandler, Subscription};
use goondan::middleware::{Middleware, MiddlewareOptions};
use goondan::prelude::*;
use goondan::tool::{ToolHandler, ToolItem};
use goondan::{BoxFuture, Value};
use serde::{Serialize, Serializer};

use crate::Log;

/// Where the extension fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "one line is for several")]
pub enum Place {
    /// In `#[init]`.
    Init,
    /// In `#[init]` of the extension that a reload adds.
    InitAtReload,
    /// In a layer, before or after `next`.
    TurnBefore,
    TurnAfter,
    /// In the drop of a local of a turn layer that runs `next` meanwhile.
    AroundTurn,
    StepBefore,
    StepAfter,
    CallBefore,
    CallAfter,
    /// In a layer that is written by hand.
    RawTurn,
    RawStep,
    RawCall,
    /// In a tool, and in one that is written by hand.
    Tool,
    BlockingTool,
    RawTool,
    /// In a function under `#[on]`, and in a handler that `#[init]` subscribed.
    Event,
    LateEvent,
    /// In `#[cleanup]`, when the conversation closes and when a reload removes the extension.
    Cleanup,
    CleanupAtReload,
    /// In the change of a state.
    State,
    /// In the drop of the extension.
    Object,
    ObjectAtReload,
    /// In the drop of a layer and of a tool, when the conversation closes.
    Layer,
    ToolObject,
    /// In the drop of a layer that `#[init]` had registered before it failed.
    RegisteredBeforeFailure,
    /// In the drop of an event handler: when the conversation closes, and when its subscription is cancelled.
    Handler,
    Cancelled,
}

/// How the extension fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "one line is for several")]
pub enum Way {
    /// Returns an error.
    Error,
    /// Returns an error whose cause panics when it is dropped, or printed.
    ErrorPanicsInDrop,
    ErrorPanicsInDisplay,
    /// Panics with a payload of this type.
    PanicsWithStr,
    PanicsWithString,
    PanicsWithNumber,
    /// Panics with a payload whose drop panics.
    PanicsWithBomb,
    /// Returns, and panics in the drop of a local.
    LocalPanics,
    /// Never returns.
    Hangs,
    /// Never returns, and panics in the drop of a local when a deadline or the caller drops its future.
    HangsAndPanics,
    CancelledAndPanics,
    /// Panics before it returns a future.
    PanicsAtOnce,
    /// Returns a future whose drop panics after it has returned.
    FuturePanics,
    /// Returns a value that panics when it is serialized, or dropped.
    OutputPanics,
    OutputPanicsInDrop,
}

impl Way {
    /// Panics, if this is one of the ways to panic.
    fn panic(self) {
        match self {
            Self::PanicsWithStr => panic!("boom"),
            Self::PanicsWithString => panic_any("boom".to_owned()),
            Self::PanicsWithNumber => panic_any(7),
            Self::PanicsWithBomb => panic_any(Bomb(Self::PanicsWithStr)),
            _ => {}
        }
    }

    fn fail_now(self) -> Result<()> {
        match self {
            Self::Error => return Err(Error::new("E_ROUGH", "boom").suggest("be gentle")),
            Self::ErrorPanicsInDrop => Err(Cause { in_display: false })?,
            Self::ErrorPanicsInDisplay => Err(Cause { in_display: true })?,
            Self::LocalPanics => drop(Bomb(Self::PanicsWithStr)),
            way => way.panic(),
        }
        Ok(())
    }

    async fn fail(self, log: &Log) -> Result<()> {
        let _bomb = match self {
            Self::LocalPanics | Self::HangsAndPanics | Self::CancelledAndPanics => Some(Bomb(Self::PanicsWithStr)),
            _ => None,
        };
        match self {
            Self::LocalPanics => Ok(()),
            Self::Hangs | Self::HangsAndPanics | Self::CancelledAndPanics => {
                log.write("hangs");
                std::future::pending().await
            }
            way => way.fail_now(),
        }
    }
}

/// Panics in this way when it is dropped.
struct Bomb(Way);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.panic();
    }
}

#[derive(Debug)]
struct Cause {
    in_display: bool,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(!self.in_display, "boom in display");
        f.write_str("boom")
    }
}

impl StdError for Cause {}

impl Drop for Cause {
    fn drop(&mut self) {
        assert!(self.in_display, "boom in drop");
    }
}

/// The output of a tool.
#[derive(JsonSchema)]
struct Output(Option<Way>);

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        assert_ne!(self.0, Some(Way::OutputPanics), "boom");
        serializer.serialize_str("here")
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        assert_ne!(self.0, Some(Way::OutputPanicsInDrop), "boom");
    }
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// `None` for an extension that does not fail.
    place: Option<Place>,
    way: Way,
    log: Log,
}

impl Config {
    /// Returns the way in which to fail, if this is the place.
    fn way_at(&self, place: Place) -> Option<Way> {
        (self.place == Some(place)).then_some(self.way)
    }

    /// Fails if this is the place.
    async fn pass(&self, place: Place) -> Result<()> {
        match self.way_at(place) {
            Some(way) => way.fail(&self.log).await,
            None => Ok(()),
        }
    }
}

/// Fails at one place in one way. Layers, tools and handlers fail once.
pub struct Rough {
    api: ExtensionApi,
    config: Config,
    once: AtomicBool,
    cancelled: Mutex<Option<Subscription>>,
    _bomb: Bomb,
}

impl Rough {
    fn way_once(&self, place: Place) -> Option<Way> {
        self.config.way_at(place).filter(|_| !self.once.swap(true, Ordering::Relaxed))
    }

    async fn pass(&self, place: Place) -> Result<()> {
        match self.way_once(place) {
            Some(way) => way.fail(&self.config.log).await,
            None => Ok(()),
        }
    }
}

/// What panics when it is dropped at `place`.
fn bomb(config: &Config, places: &[Place]) -> Bomb {
    Bomb(places.iter().find_map(|place| config.way_at(*place)).unwrap_or(Way::Error))
}

#[goondan::extension(name = "rough")]
impl Rough {
    #[init]
    async fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        config.pass(Place::Init).await?;
        config.pass(Place::InitAtReload).await?;
        let raw = |place, bomb| Raw { config: config.clone(), place, once: AtomicBool::new(false), _bomb: bomb };
        let no_bomb = || Bomb(Way::Error);
        let layer_bomb = bomb(&config, &[Place::Layer, Place::RegisteredBeforeFailure]);
        api.pipeline().register(Turn, raw(Place::RawTurn, layer_bomb), MiddlewareOptions::default().named("raw"))?;
        api.pipeline().register(Step, raw(Place::RawStep, no_bomb()), MiddlewareOptions::default().named("raw"))?;
        api.pipeline().register(ToolCall, raw(Place::RawCall, no_bomb()), MiddlewareOptions::default().named("raw"))?;
        api.tools().register(ToolItem::new("rough__raw")?, raw(Place::RawTool, bomb(&config, &[Place::ToolObject])))?;
        api.events().on("turn.started", raw(Place::LateEvent, bomb(&config, &[Place::Handler])))?.detach();
        let cancelled = api.events().on("never", raw(Place::Cancelled, bomb(&config, &[Place::Cancelled])))?;
        if config.place == Some(Place::RegisteredBeforeFailure) {
            return Err(Error::new("E_ROUGH", "boom"));
        }
        let object_bomb = bomb(&config, &[Place::Object, Place::ObjectAtReload]);
        let (once, cancelled) = (AtomicBool::new(false), Mutex::new(Some(cancelled)));
        Ok(Self { api, config, once, cancelled, _bomb: object_bomb })
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let cancelled = self.cancelled.lock().unwrap().take();
        if self.config.place == Some(Place::Cancelled) {
            drop(cancelled);
        } else if let Some(kept) = cancelled {
            kept.detach();
        }
        if let Some(way) = self.way_once(Place::State) {
            self.api.state().update(|state: &mut u32| {
                *state += 1;
                way.fail_now()
            })??;
        }
        let _around = Bomb(self.way_once(Place::AroundTurn).unwrap_or(Way::Error));
        self.pass(Place::TurnBefore).await?;
        let result = next.run(ctx).await?;
        self.pass(Place::TurnAfter).await?;
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        self.pass(Place::StepBefore).await?;
        let result = next.run(ctx).await?;
        self.pass(Place::StepAfter).await?;
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        self.pass(Place::CallBefore).await?;
        let result = next.run(ctx).await?;
        self.pass(Place::CallAfter).await?;
        Ok(result)
    }

    /// Answers.
    #[tool(effect = read)]
    async fn answer(&self) -> Result<Output> {
        self.pass(Place::Tool).await?;
        Ok(Output(self.config.way_at(Place::Tool)))
    }

    /// Answers from another thread.
    #[tool(blocking)]
    fn answer_slowly(&self) -> Result<Output> {
        let way = self.config.way_at(Place::BlockingTool);
        way.map_or(Ok(()), Way::fail_now)?;
        Ok(Output(way))
    }

    #[on("turn.started")]
    async fn hear(&self, _event: &Event) -> Result<()> {
        self.pass(Place::Event).await
    }

    #[cleanup]
    async fn close(&self) -> Result<()> {
        self.config.pass(Place::Cleanup).await?;
        self.config.pass(Place::CleanupAtReload).await
    }
}

/// A layer, a tool and an event handler, written by hand.
struct Raw {
    config: Config,
    place: Place,
    once: AtomicBool,
    _bomb: Bomb,
}

impl Raw {
    /// Runs `work`, and fails if this is the place.
    fn run<'a, T: 'a>(&'a self, work: impl Future<Output = Result<T>> + Send + 'a) -> BoxFuture<'a, Result<T>> {
        let way = self.config.way_at(self.place).filter(|_| !self.once.swap(true, Ordering::Relaxed));
        assert_ne!(way, Some(Way::PanicsAtOnce), "boom");
        let log = &self.config.log;
        let work = async move {
            if let Some(way) = way {
                way.fail(log).await?;
            }
            work.await
        };
        let bomb = Bomb(if way == Some(Way::FuturePanics) { Way::PanicsWithStr } else { Way::Error });
        Box::pin(WithBomb { work: Box::pin(work), _bomb: bomb })
    }
}

/// A future that still owns a bomb when it is ready.
struct WithBomb<'a, T> {
    work: BoxFuture<'a, Result<T>>,
    _bomb: Bomb,
}

impl<T> Future for WithBomb<'_, T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        self.work.as_mut().poll(cx)
    }
}

macro_rules! raw_layer {
    ($kind:ident, $context:ident, $result:ident) => {
        impl Middleware<$kind> for Raw {
            fn handle<'a>(
                &'a self,
                ctx: &'a mut $context<'_>,
                next: Next<'a, $kind>,
            ) -> BoxFuture<'a, Result<$result>> {
                self.run(next.run(ctx))
            }
        }
    };
}

raw_layer!(Turn, TurnContext, TurnResult);
raw_layer!(Step, StepContext, StepResult);
raw_layer!(ToolCall, ToolCallContext, ToolCallResult);

impl ToolHandler for Raw {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        self.run(async { Ok(ToolReply::text("here")) })
    }
}

impl EventHandler for Raw {
    fn handle<'a>(&'a self, _: &'a Event) -> BoxFuture<'a, Result<()>> {
        self.run(async { Ok(()) })
    }
}
