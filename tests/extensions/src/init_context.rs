//! An extension that asks what `#[init]` can ask.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use goondan::prelude::*;

use crate::Log;

/// Logs where it runs.
pub struct Placed {
    ctx: InitContext,
    log: Log,
}

/// The config of [`Placed`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacedConfig {
    log: Log,
    /// Whether `#[init]` adds its conversation to the file `visitors` of the extension.
    #[serde(default)]
    files: bool,
}

#[goondan::extension(name = "placed")]
impl Placed {
    #[init]
    async fn new(ctx: InitContext, config: PlacedConfig) -> Result<Self> {
        let PlacedConfig { log, files } = config;
        let (workspace, root) = (ctx.workspace().unwrap_or("-"), ctx.bundle_root().map(|root| root.display()));
        let root = root.map_or("-".to_owned(), |root| root.to_string());
        let (extension, agent, instance) = (ctx.extension(), ctx.agent(), ctx.instance());
        log.write(format!("{extension} {agent} {instance} {workspace} {root} inspect={}", ctx.inspect()));
        if files {
            let visitors = ctx.state_dir()?.join("visitors");
            writeln!(OpenOptions::new().append(true).create(true).open(visitors)?, "{agent}:{instance}")?;
        }
        Ok(Self { ctx, log })
    }

    #[on("placed.number")]
    async fn number(&self) -> Result<()> {
        self.log.write(self.ctx.conversation().to_string());
        Ok(())
    }

    #[on("placed.others")]
    async fn others(&self) -> Result<()> {
        self.log.write(present(&self.ctx)?);
        Ok(())
    }

    #[on("placed.files")]
    async fn files(&self) -> Result<()> {
        let bundle = self.ctx.bundle_files()?;
        let paths: Vec<_> = bundle.paths().map(|path| path.display().to_string()).collect();
        let takes_more = bundle.would_change(Path::new("/bundle/more.yaml"), b"kind: Agent");
        self.log.write(format!("{} more={takes_more}", paths.join(" ")));
        Ok(())
    }

    #[on("placed.secrets")]
    async fn secrets(&self) -> Result<()> {
        self.log.write(self.ctx.secret_variables()?.join(" "));
        Ok(())
    }

    #[middleware(turn)]
    async fn look(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.log.write(std::fs::read_to_string(self.ctx.state_dir()?.join("visitors"))?);
        next.run(ctx).await
    }
}

fn present(ctx: &InitContext) -> Result<String> {
    let present = ctx.extensions()?.into_iter().map(|extension| format!("{}={}", extension.name, extension.declared));
    Ok(present.collect::<Vec<_>>().join(" "))
}

/// Looks for others in its `#[init]`.
#[goondan::extension(name = "seeker")]
pub mod seeker {
    use goondan::prelude::*;

    use super::{PlacedConfig, present};

    #[init]
    fn new(ctx: InitContext, config: PlacedConfig) -> Result<()> {
        config.log.write(present(&ctx)?);
        if config.files { Err(Error::msg("it fails")) } else { Ok(()) }
    }
}

/// Takes all that `#[init]` can take, in another order.
#[goondan::extension(name = "placed-module")]
pub mod placed_module {
    use goondan::prelude::*;

    use super::PlacedConfig;

    #[init]
    fn open(config: PlacedConfig, ctx: InitContext, api: ExtensionApi) -> Result<()> {
        config.log.write(ctx.extension().as_str());
        api.state().set(ctx.instance())
    }
}
