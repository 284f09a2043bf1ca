//! The generated code calls a function as a safe Rust function.
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
    async unsafe fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
