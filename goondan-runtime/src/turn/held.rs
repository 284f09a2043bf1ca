//! Holding the stream of a step until its layers have approved the answer.

use goondan_core::host::directive::HoldStream;
use goondan_core::{Conversation, ExtensionName, Result};

use super::directed::Directed;

/// Whether a middleware holds the pieces of the answer.
#[derive(Default)]
pub(super) struct HeldStream(bool);

impl HeldStream {
    pub(super) fn is_held(&self) -> bool {
        self.0
    }
}

impl Directed<HoldStream> for HeldStream {
    fn take(&mut self, _: HoldStream, _: &ExtensionName, _: &Conversation) -> Result<()> {
        self.0 = true;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.0
    }
}
