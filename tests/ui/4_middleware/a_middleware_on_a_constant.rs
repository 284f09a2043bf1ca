//! Only a function can be called when its moment comes.
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
