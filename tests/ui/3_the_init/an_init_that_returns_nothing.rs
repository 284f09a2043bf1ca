//! `#[init]` makes the extension, so it returns it.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() {

    }
}

fn main() {}
