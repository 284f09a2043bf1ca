//! `#[init]` may store the context, so it takes it by value.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(ctx: &InitContext) -> Self {
        Self
    }
}

fn main() {}
