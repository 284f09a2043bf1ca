//! What is in braces is the name of an argument.
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

    #[tool(present = "adds {}")]
    async fn add(&self, note: Note) -> Result<()> {
        Ok(())
    }
}

fn main() {}
