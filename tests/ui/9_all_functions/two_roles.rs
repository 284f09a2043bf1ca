//! The parameters of a function fit one role.
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
    #[on("turn.completed")]
    async fn count(&self) -> Result<()> {
        Ok(())
    }
}

fn main() {}
