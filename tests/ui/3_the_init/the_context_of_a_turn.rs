//! No turn runs yet.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(ctx: &TurnContext<'_>) -> Self {
        Self
    }
}

fn main() {}
