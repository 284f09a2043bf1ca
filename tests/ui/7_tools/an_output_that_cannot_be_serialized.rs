//! Models read the output of a tool as JSON.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

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
    async fn read(&self) -> Result<Note> {
        Ok(Note { text: String::new() })
    }
}

fn main() {}
