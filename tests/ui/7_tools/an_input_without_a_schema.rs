//! Models read the schema of an input.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[derive(Deserialize)]
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
