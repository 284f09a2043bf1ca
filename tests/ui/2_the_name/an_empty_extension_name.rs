//! A name has at least one letter.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }
}

fn main() {}
