//! The arguments of a call are one object, so a tool has one input.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    line: usize,
}

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn add(&self, note: Note, place: Place) -> Result<()> {
        Ok(())
    }
}

fn main() {}
