//! The generated call has no type arguments.
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
