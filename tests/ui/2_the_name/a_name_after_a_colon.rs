//! Options are written as `key = value`.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name: "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }
}

fn main() {}
