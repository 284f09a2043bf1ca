//! A plain function would hold up everything else on its thread.
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
    fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
