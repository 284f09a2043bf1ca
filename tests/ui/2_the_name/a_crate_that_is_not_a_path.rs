//! The option `crate` is a path, with which names in expansions begin.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes", crate = "goondan")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }
}

fn main() {}
