//! The arguments are dropped once they are deserialized, so an input owns its data.
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
