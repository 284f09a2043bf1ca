//! An input is deserialized from the arguments of the call.
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
