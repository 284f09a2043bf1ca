//! The pattern decides for which events a function is called.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[on]
    async fn count(&self, event: &Event) -> Result<()> {
        Ok(())
    }
}

fn main() {}
