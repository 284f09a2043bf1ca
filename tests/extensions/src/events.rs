//! Extensions that emit events and subscribe to them.

use std::sync::Mutex;

use goondan::event::{RepoAvailable, RuntimeEvent, Subscription};
use goondan::prelude::*;
use goondan::{Value, json};

use tokio::sync::Semaphore;

use crate::{Log, LogConfig};

/// Emits events that others listen to, before and after `next`.
pub struct Emitting {
    api: ExtensionApi,
}

#[goondan::extension(name = "emitting")]
impl Emitting {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    #[middleware(turn)]
    async fn emit(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.api.events().emit("news", ("first", 2, json!({ "third": true })));
        self.api.events().emit("workspace.repoAvailable", (RepoAvailable::new("/r"),));
        self.api.events().emit("workspace.other", ());
        for illegal in ["", "workspace.*", "workspace.a b"] {
            self.api.events().emit(illegal, ());
        }
        let result = next.run(ctx).await?;
        self.api.events().emit("news", ());
        Ok(result)
    }
}

/// Logs the events that it hears.
pub struct Listening {
    log: Log,
    cancelled: Mutex<Option<Subscription>>,
    /// Subscriptions end when they are dropped.
    _subscriptions: [Subscription; 2],
}

#[goondan::extension(name = "listening")]
impl Listening {
    #[init]
    fn new(api: ExtensionApi, config: LogConfig) -> Result<Self> {
        let write = |prefix: &'static str| {
            let log = config.log.clone();
            move |event: Event| {
                log.write(format!("{prefix} {}", event.name()));
                async { Ok(()) }
            }
        };
        let failing = api.events().on("news", |_: Event| async { Err(Error::msg("this handler always fails")) })?;
        api.events().on("turn.completed", |_: Event| async { panic!("this handler panics") })?.detach();
        let cancelled = api.events().on("news", write("cancelled"))?;
        Ok(Self {
            _subscriptions: [api.events().once("news", write("once"))?, failing],
            cancelled: Mutex::new(Some(cancelled)),
            log: config.log,
        })
    }

    #[on("news")]
    async fn news(&self, event: &Event) -> Result<()> {
        self.log.write(format!("news {}", Value::Array(event.args().to_vec())));
        Ok(())
    }

    #[on("workspace.*")]
    async fn workspace(&self, event: &Event) -> Result<()> {
        let path = event.payload::<RepoAvailable>().map(|repo| repo.path);
        self.log.write(format!("glob {} {:?}", event.name(), path.ok()));
        Ok(())
    }

    #[on("turn.completed")]
    async fn completed(&self, event: &Event) -> Result<()> {
        let RuntimeEvent::TurnCompleted { step_count, .. } = event.payload()? else {
            return Err(Error::msg("another"));
        };
        self.log.write(format!("{step_count} steps"));
        if let Some(subscription) = self.cancelled.lock().unwrap().take() {
            subscription.cancel();
        }
        Ok(())
    }
}

/// Logs every event.
pub struct Watching {
    log: Log,
}

#[goondan::extension(name = "watching")]
impl Watching {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[on("*")]
    async fn watch(&self, event: &Event) -> Result<()> {
        self.log.write(event.args().first().map(ToString::to_string).unwrap_or_default());
        Ok(())
    }

    #[cleanup]
    async fn close(&self) {
        self.log.write("cleaned up");
    }
}

/// Handles the start of a turn until a step of it has ended.
pub struct SlowListener {
    log: Log,
    ended: Semaphore,
}

#[goondan::extension(name = "slow-listener")]
impl SlowListener {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log, ended: Semaphore::new(0) }
    }

    #[on("turn.started")]
    async fn hear(&self, _event: &Event) -> Result<()> {
        self.ended.acquire().await?.forget();
        self.log.write("heard the start");
        Ok(())
    }

    #[on("step.completed")]
    async fn open(&self, _event: &Event) -> Result<()> {
        self.log.write("a step ended");
        self.ended.add_permits(1);
        Ok(())
    }
}
