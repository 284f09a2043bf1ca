//! The arguments are dropped once they are deserialized, so an input is taken by value.
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
    async fn add(&self, note: &Note) -> Result<()> {
        Ok(())
    }
}

fn main() {}
