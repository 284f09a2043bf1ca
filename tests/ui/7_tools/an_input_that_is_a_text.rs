//! Models pass arguments by name, so an input is a struct.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn add(&self, text: String) -> Result<()> {
        Ok(())
    }
}

fn main() {}
