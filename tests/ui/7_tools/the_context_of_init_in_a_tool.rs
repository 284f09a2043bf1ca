//! `#[init]` takes it, and may keep it.
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
    async fn count(&self, ctx: InitContext) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
