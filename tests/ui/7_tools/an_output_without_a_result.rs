//! A tool can fail, so it returns a `Result`.
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
    async fn count(&self) -> usize {
        0
    }
}

fn main() {}
