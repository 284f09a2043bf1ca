//! A pattern is a name, in which `*` matches any text.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[on("turn completed")]
    async fn count(&self, event: &Event) -> Result<()> {
        Ok(())
    }
}

fn main() {}
