//! Extensions whose event handlers emit events.

use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Emits the event that it hears, forever.
pub struct Echoing {
    log: Log,
}

#[goondan::extension(name = "echoing")]
impl Echoing {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[on("turn.started")]
    async fn start(&self, api: &ExtensionApi) -> Result<()> {
        api.events().emit("echo", ());
        Ok(())
    }

    #[on("echo")]
    async fn echo(&self, event: &Event, api: &ExtensionApi) -> Result<()> {
        self.log.write(event.name());
        tokio::task::yield_now().await;
        api.events().emit("echo", ());
        Ok(())
    }
}

/// Emits the event of its config for each one that it hears.
pub struct Answering;

#[derive(Debug, Deserialize, JsonSchema)]
struct AnsweringConfig {
    log: Log,
    hears: String,
    emits: String,
}

#[goondan::extension(name = "answering")]
impl Answering {
    #[init]
    fn new(api: ExtensionApi, config: AnsweringConfig) -> Result<Self> {
        let AnsweringConfig { log, hears, emits } = config;
        let of_handler = api.clone();
        let handler = move |event: Event| {
            log.write(event.name());
            of_handler.events().emit(&emits, ());
            async { Ok(()) }
        };
        api.events().on(&hears, handler)?.detach();
        Ok(Self)
    }
}

/// Counts down: emits `count.<n - 1>` when it hears `count.<n>`.
pub struct CountingDown {
    log: Log,
}

#[goondan::extension(name = "counting-down")]
impl CountingDown {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[on("count.*")]
    async fn count(&self, event: &Event, api: &ExtensionApi) -> Result<()> {
        self.log.write(event.name());
        let number: u32 = event.name().trim_start_matches("count.").parse()?;
        if number > 0 {
            api.events().emit(&format!("count.{}", number - 1), ());
        }
        Ok(())
    }
}

/// Emits the event that it hears, from a task of its own.
pub struct Spawning {
    log: Log,
}

#[goondan::extension(name = "spawning")]
impl Spawning {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[on("spawn")]
    async fn spawn(&self, event: &Event, api: &ExtensionApi) -> Result<()> {
        self.log.write(event.name());
        let api = api.clone();
        // The handler waits for it, so that the drain of the bus sees no moment without work.
        tokio::spawn(async move { api.events().emit("spawn", ()) }).await?;
        Ok(())
    }
}

/// Fails for every event that it hears.
#[goondan::extension(name = "failing-handler")]
pub mod failing_handler {
    use goondan::prelude::*;

    #[on("fail")]
    async fn fail() -> Result<()> {
        Err(Error::new("E_MINE", "as asked").suggest("do not ask"))
    }
}
