//! An extension whose state changes while no turn runs.

use goondan::prelude::*;

/// Counts the events `count` in its state.
pub struct Open {
    api: ExtensionApi,
}

#[goondan::extension(name = "open")]
impl Open {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    #[on("count")]
    async fn count(&self, _event: &Event) -> Result<()> {
        self.api.state().update(|seen: &mut u32| *seen += 1)
    }
}
