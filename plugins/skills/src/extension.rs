//! The extension: when it looks for skills, and what a step shows.

use std::path::Path;
use std::sync::Arc;

use goondan::event::RepoAvailable;
use goondan::prelude::*;
use process::Environment;

use crate::collection::{Collection, State};
use crate::config::Config;
use crate::tools;

/// The extension.
pub struct Skills {
    /// `None` with an empty config.
    collection: Option<Arc<Collection>>,
}

/// Offers skills to the model: folders with instructions for certain tasks.
#[goondan::extension(name = "skills")]
impl Skills {
    #[init]
    async fn new(api: ExtensionApi, config: Config, ctx: InitContext) -> Result<Self> {
        // PATTERN-SKILL-19
        let Some(directories) = config.directories()? else {
            api.logger().warn("no skills are configured: write `discovery: {}` in the config of the extension");
            return Ok(Self { collection: None });
        };
        let home = ctx.bundle_root().map_or_else(std::env::current_dir, |root| Ok(root.to_owned()))?;
        let environment = Environment::without_secrets(move || ctx.secret_variables().ok())
            .or_only(config.inherit_env.clone())
            .with(config.env.iter());
        let collection = Arc::new(Collection::new(api, config, environment, directories, home));
        let auto_scan = &collection.config.auto_scan;
        // The root of a repository that became available is searched again as on the event.
        let has_repo = collection.state()?.root.is_some();
        if if has_repo { auto_scan.on_repo_available } else { auto_scan.on_init } {
            collection.scan().await?;
        }
        tools::register(&collection)?;
        Ok(Self { collection: Some(collection) })
    }

    /// Shows the skills, inside of the layers that remove messages.
    #[middleware(step, priority = 100)]
    async fn context(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if let Some(collection) = &self.collection {
            collection.show(ctx).await?;
        }
        next.run(ctx).await
    }

    /// Tells layers further out which skills are open at the end of the turn.
    // PATTERN-SKILL-02
    #[middleware(turn)]
    async fn report(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await?;
        if let Some(collection) = &self.collection {
            ctx.metadata_mut().insert("skills.open".to_owned(), collection.state()?.open.into());
        }
        Ok(result)
    }

    /// Searches a repository that has become available.
    // PATTERN-SKILL-18
    #[on("workspace.repoAvailable")]
    async fn repo_available(&self, event: &Event) -> Result<()> {
        let Some(collection) = self.collection.as_ref().filter(|found| found.config.auto_scan.on_repo_available) else {
            return Ok(());
        };
        let RepoAvailable { path, .. } = event.payload()?;
        collection.api.state().update(|state: &mut State| {
            let root: &Path = state.root.as_deref().unwrap_or(&collection.home);
            state.root = Some(root.join(path));
        })?;
        collection.scan().await
    }
}
