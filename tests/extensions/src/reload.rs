//! An extension that holds a costly resource, and that reloads keep or replace.

use std::sync::atomic::{AtomicU32, Ordering};

use goondan::prelude::*;

use crate::Log;

/// A resource that is costly to open. Each has another number.
struct Connection(u32);

impl Connection {
    fn open() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

/// Holds a connection and counts turns, in memory and in its state.
pub struct Holder {
    api: ExtensionApi,
    config: Config,
    connection: Connection,
    turns: AtomicU32,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config {
    log: Log,
    tag: String,
    /// Makes `#[init]` fail, after it has set its state to this number and subscribed to an event.
    #[serde(default)]
    fail_with: Option<u32>,
}

#[goondan::extension(name = "holder")]
impl Holder {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        if let Some(left) = config.fail_with {
            api.state().set(&left)?;
            let log = config.log.clone();
            api.events()
                .on("agent.delegate", move |_| {
                    log.write("a broken one hears");
                    std::future::ready(Ok(()))
                })?
                .detach();
            return Err(Error::msg("broken"));
        }
        Ok(Self { api, config, connection: Connection::open(), turns: AtomicU32::new(0) })
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let count = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        self.api.state().update(|stored: &mut u32| *stored += 1)?;
        let stored: u32 = self.api.state().get()?.unwrap_or_default();
        let (tag, input) = (&self.config.tag, ctx.input().input.clone().unwrap_or_default());
        self.config.log.write(match &*input {
            "which" => format!("{tag} on {}", self.connection.0),
            input => format!("{tag} {input}: {count} of {stored}"),
        });
        next.run(ctx).await
    }

    /// Does nothing.
    #[tool(effect = read)]
    async fn nothing(&self) -> Result<()> {
        Ok(())
    }

    #[on("extension.cleanup")]
    async fn heard(&self, event: &Event) -> Result<()> {
        let gone: goondan::event::ExtensionCleanup = event.payload()?;
        self.config.log.write(format!("{} hears of {}", self.config.tag, gone.extension));
        Ok(())
    }

    #[cleanup]
    async fn close(&self) -> Result<()> {
        self.config.log.write(format!("{} closes", self.config.tag));
        self.api.state().set(&1000)
    }
}
