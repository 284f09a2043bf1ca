//! One struct holds all arguments of a call.
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
    async fn add(&self, left: i64, right: i64) -> Result<()> {
        Ok(())
    }
}

fn main() {}
