//! Extensions that take their time to begin or to end.

use std::borrow::Cow;
use std::sync::LazyLock;

use goondan::middleware::MiddlewareOptions;
use goondan::prelude::*;
use tokio::sync::Barrier;

use crate::log::Log;
use crate::surface::NoopMiddleware;

/// Where the cleanups of two extensions meet.
static MEETING: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(2));

/// Cleans up together with another one, or, with a layer after that of another extension, logs how it ends.
pub struct Ending {
    config: EndingConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct EndingConfig {
    tag: String,
    log: Log,
    after: Option<String>,
    #[serde(default)]
    meets: bool,
}

#[goondan::extension(name = "ending")]
impl Ending {
    #[init]
    fn new(api: ExtensionApi, config: EndingConfig) -> Result<Self> {
        let mut options = MiddlewareOptions::default();
        options.after.extend(config.after.clone().map(Cow::Owned));
        api.pipeline().register(Turn, NoopMiddleware, options)?;
        Ok(Self { config })
    }

    #[cleanup]
    async fn end(&self) -> Result<()> {
        self.config.log.write(format!("{} begins to end", self.config.tag));
        if self.config.meets {
            MEETING.wait().await;
        }
        tokio::task::yield_now().await;
        self.config.log.write(format!("{} has ended", self.config.tag));
        Ok(())
    }
}

/// Never begins.
pub struct Hanging;

#[goondan::extension(name = "hanging")]
impl Hanging {
    #[init]
    async fn new() -> Self {
        std::future::pending().await
    }
}
