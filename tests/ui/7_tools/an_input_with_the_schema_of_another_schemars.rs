//! Each version of schemars has a trait `JsonSchema` of its own.
#![allow(unused)]
use goondan::prelude::*;

/// What a second version of the crate looks like to the compiler.
mod schemars_0_8 {
    pub trait JsonSchema {}
}

#[derive(Deserialize)]
struct Note {
    text: String,
}

impl schemars_0_8::JsonSchema for Note {}

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn add(&self, note: Note) -> Result<()> {
        Ok(())
    }
}

fn main() {}
