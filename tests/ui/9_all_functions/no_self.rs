//! The functions of an `impl` block take the extension.
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
    async fn count() -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
