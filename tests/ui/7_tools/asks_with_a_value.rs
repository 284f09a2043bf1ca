//! The word says all.
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

    #[tool(asks = true)]
    async fn send(&self, ctx: &ToolContext<'_>) -> Result<ToolReply> {
        Ok(ToolReply::ask(Question::new("Send it?")))
    }
}

fn main() {}
