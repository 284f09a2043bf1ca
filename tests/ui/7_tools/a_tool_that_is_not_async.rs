//! A plain function would block the thread of the runtime.
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
