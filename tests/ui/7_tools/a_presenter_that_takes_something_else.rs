//! It is called with the call.
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

    #[tool(present = shown)]
    async fn add(&self, note: Note) -> Result<()> {
        Ok(())
    }
}

fn shown(note: &Note) -> String {
    note.text.clone()
}

fn main() {}
