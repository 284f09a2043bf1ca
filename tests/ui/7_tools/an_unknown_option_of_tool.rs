//! A misspelled option would silently have no effect.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(timeot = "5s")]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
