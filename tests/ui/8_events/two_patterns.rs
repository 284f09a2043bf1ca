//! A function listens to one name or glob.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[on("turn.completed", "turn.failed")]
    async fn count(&self, event: &Event) -> Result<()> {
        Ok(())
    }
}

fn main() {}
