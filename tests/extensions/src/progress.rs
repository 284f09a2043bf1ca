//! A tool that says how far it is, and an extension that hears of it.

use goondan::prelude::*;
use tokio::sync::Notify;

use super::LogConfig;

/// Works in two bursts, between which it waits for the event `work.go`.
pub struct Working {
    go: Notify,
}

#[goondan::extension(name = "working")]
impl Working {
    #[init]
    fn new() -> Self {
        Self { go: Notify::new() }
    }

    /// Says ten times how far it is, waits, and says it ten times again.
    #[tool]
    async fn work(&self, ctx: &ToolContext<'_>, api: &ExtensionApi) -> Result<()> {
        ctx.progress(f64::NAN, None, "no number");
        for done in 0..10 {
            ctx.progress(f64::from(done), Some(20.0), "first half-4711");
        }
        api.events().emit("work.waits", ());
        self.go.notified().await;
        for done in 10..20 {
            ctx.progress(f64::from(done), None, "second half-4711");
        }
        Ok(())
    }

    #[on("work.go")]
    async fn go(&self) -> Result<()> {
        self.go.notify_one();
        Ok(())
    }
}

/// Logs the progress of tool calls.
pub struct HearingProgress {
    config: LogConfig,
}

#[goondan::extension(name = "hearing-progress")]
impl HearingProgress {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { config }
    }

    #[on("tool.progress")]
    async fn hear(&self, event: &Event) -> Result<()> {
        self.config.log.write(event.args()[0].to_string());
        Ok(())
    }
}
