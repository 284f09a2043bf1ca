//! `#[init]` makes the extension, so there is none to take.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(&self) -> Self {
        Self
    }
}

fn main() {}
