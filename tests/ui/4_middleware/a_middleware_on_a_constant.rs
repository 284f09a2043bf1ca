//! The runtime calls middlewares, so they are functions.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    const LINES: usize = 3;
}

fn main() {}
