//! A brace that is text is doubled.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(present = "adds {text")]
    async fn add(&self, note: Note) -> Result<()> {
        Ok(())
    }
}

fn main() {}
