//! An input is read from what the model wrote.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[derive(JsonSchema)]
struct Note {
    text: String,
}

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn add(&self, note: Note) -> Result<()> {
        Ok(())
    }
}

fn main() {}
