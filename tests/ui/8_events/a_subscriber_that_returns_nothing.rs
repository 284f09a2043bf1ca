//! The error of a subscriber is reported, so it returns a `Result`.
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
    async fn count(&self, event: &Event) {}
}

fn main() {}
