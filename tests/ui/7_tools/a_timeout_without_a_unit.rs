//! The unit of a bare number would be ambiguous.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(timeout = "5")]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
