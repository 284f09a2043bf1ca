//! The effect of a tool is one of three words.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(effect = write)]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
