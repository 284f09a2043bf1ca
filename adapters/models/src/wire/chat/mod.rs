//! Chat completions, as OpenAI introduced them and many others speak them.

mod decode;
mod dialect;
mod encode;
mod message;
mod options;

use std::borrow::Cow;

use goondan_core::{ModelOptions, Result};

use super::doubled::once;
use super::{Encoding, Wire, closed};
use crate::answer::Answer;
use crate::http::Failure;

use dialect::ToolChoices;

pub use dialect::Dialect;

/// The interface that many providers share: `POST /chat/completions`. The differences are in the [`Dialect`].
#[derive(Clone, Copy, Debug)]
pub struct Chat {
    dialect: Dialect,
}

impl Chat {
    /// Returns the interface as a provider speaks it.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect }
    }
}

impl Wire for Chat {
    const API: &'static str = "openai-chat";

    fn path(&self, _: &str) -> Cow<'static, str> {
        "/chat/completions".into()
    }

    fn check(&self, _: &str, options: &ModelOptions) -> Result<()> {
        options::check(&self.dialect, options)
    }

    fn closes_tools(&self, host: &str, tools: usize, options: &ModelOptions) -> bool {
        closed::closes_tools(host, tools, options, options::entry)
    }

    fn holds_to_schema(&self, _: &str, _: &ModelOptions, with_tools: bool) -> bool {
        // Some providers refuse a schema beside tools.
        self.dialect.schemas && !with_tools
    }

    fn requires_tools(&self, _: &str, _: &ModelOptions) -> bool {
        self.dialect.tool_choice != ToolChoices::Ignored
    }

    fn encode(&self, request: &Encoding<'_>) -> Result<Vec<u8>> {
        encode::encode(&self.dialect, request)
    }

    fn event(&self, _: &str, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
        once(data, |data| decode::event(&self.dialect, data, answer))
    }

    fn closed(&self, answer: &mut Answer<'_>) {
        answer.end_without_reason(false);
    }
}
