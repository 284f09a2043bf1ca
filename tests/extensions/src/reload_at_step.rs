//! An extension that has layers around steps and tools, and none around turns.

use goondan::prelude::*;
use tokio::sync::mpsc;

use crate::Log;

/// Logs the steps that it is around.
pub struct Stepper {
    api: ExtensionApi,
    config: Config,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config {
    log: Log,
    tag: String,
    #[serde(default)]
    init: Init,
}

#[derive(Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Init {
    #[default]
    Done,
    Fails,
    /// Waits until the program emits `stepper.go`.
    Waits,
}

#[goondan::extension(name = "stepper")]
impl Stepper {
    #[init]
    async fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        match config.init {
            Init::Done => {}
            Init::Fails => return Err(Error::msg("broken")),
            Init::Waits => {
                let (sender, mut go) = mpsc::unbounded_channel();
                let forward = move |_| {
                    // Nothing waits any more for a second one.
                    let _ = sender.send(());
                    std::future::ready(Ok(()))
                };
                let _subscription = api.events().on("stepper.go", forward)?;
                api.events().emit("stepper.waits", ());
                go.recv().await;
            }
        }
        Ok(Self { api, config })
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let steps: u32 = self.api.state().update(|steps: &mut u32| {
            *steps += 1;
            *steps
        })?;
        self.config.log.write(format!("{} is around step {}, its number {steps}", self.config.tag, ctx.step_index()));
        next.run(ctx).await
    }

    /// Logs its extension.
    #[tool(effect = read)]
    async fn call(&self) -> Result<()> {
        self.config.log.write(format!("{} is called", self.config.tag));
        Ok(())
    }

    #[cleanup]
    async fn close(&self) -> Result<()> {
        self.config.log.write(format!("{} closes", self.config.tag));
        Ok(())
    }
}
