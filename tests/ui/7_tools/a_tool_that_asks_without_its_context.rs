//! The handler runs again once it is decided, and has to read that.
#![allow(unused)]
use goondan::prelude::*;
use goondan::decision::Question;
use goondan::tool::ToolReply;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(asks)]
    async fn send(&self, api: &ExtensionApi) -> Result<ToolReply> {
        Ok(ToolReply::ask(Question::new("Send it?")))
    }
}

fn main() {}
