//! The record in the binary contains the name, so it is a literal.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = notes)]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }
}

fn main() {}
