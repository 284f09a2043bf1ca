//! The arguments of a call are one object, so a tool has one input.
#![allow(unused)]
use goondan::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn add(&self, one: Note, two: Note) -> Result<()> {
        Ok(())
    }
}

fn main() {}
