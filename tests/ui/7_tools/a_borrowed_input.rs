//! What the model wrote is gone once it is read, so an input owns what it holds.
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
    async fn add(&self, note: &str) -> Result<()> {
        Ok(())
    }
}

fn main() {}
