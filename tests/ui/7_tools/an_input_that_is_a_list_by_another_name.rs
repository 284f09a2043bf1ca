//! Arguments are a JSON object, whatever the name of their type.
#![allow(unused)]
use goondan::prelude::*;

type Lines = Vec<String>;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn add(&self, lines: Lines) -> Result<()> {
        Ok(())
    }
}

fn main() {}
