//! The runtime calls the function, and names no types for it.
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
    async fn add(&self, note: impl Into<String>) -> Result<()> {
        Ok(())
    }
}

fn main() {}
