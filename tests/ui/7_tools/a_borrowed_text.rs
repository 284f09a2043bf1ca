//! The fields of an input own their data.
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
    async fn add(&self, text: &str) -> Result<()> {
        Ok(())
    }
}

fn main() {}
