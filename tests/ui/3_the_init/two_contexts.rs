//! An extension is made for one conversation.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(ctx: InitContext, other: InitContext) -> Self {
        Self
    }
}

fn main() {}
