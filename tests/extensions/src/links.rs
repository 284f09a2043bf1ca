//! An extension whose tool puts a link where the store keeps a file or directory.

use std::fs;
use std::path::PathBuf;

use goondan::prelude::*;

/// Its tool replaces a path by a link. Each turn has the store write all of its files anew.
pub struct Planting {
    api: ExtensionApi,
    config: PlantingConfig,
}

#[derive(Deserialize, JsonSchema)]
struct PlantingConfig {
    at: PathBuf,
    to: PathBuf,
}

#[goondan::extension(name = "planting")]
impl Planting {
    #[init]
    fn new(api: ExtensionApi, config: PlantingConfig) -> Self {
        Self { api, config }
    }

    /// Plants the link.
    #[tool(effect = idempotent)]
    async fn plant(&self) -> Result<()> {
        let PlantingConfig { at, to } = &self.config;
        if at.is_dir() {
            fs::remove_dir_all(at)?;
        } else if at.exists() {
            fs::remove_file(at)?;
        }
        std::os::unix::fs::symlink(to, at)?;
        Ok(())
    }

    #[middleware(turn)]
    async fn rewrite(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        // So that the base and the state are written anew.
        let oldest = ctx.conversation().iter().next().map(|message| message.to_id());
        oldest.into_iter().for_each(|oldest| ctx.emit(MessageEvent::remove(oldest)));
        self.api.state().update(|turns: &mut u32| *turns += 1)?;
        next.run(ctx).await
    }
}
