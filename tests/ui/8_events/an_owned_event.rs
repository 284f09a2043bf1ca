//! All subscribers share one event, so they borrow it.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[on("turn.completed")]
    async fn count(&self, event: Event) -> Result<()> {
        Ok(())
    }
}

fn main() {}
