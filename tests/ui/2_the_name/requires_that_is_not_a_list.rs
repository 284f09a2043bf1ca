//! An extension can require several capabilities, so they are a list.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes", requires = "workspace")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }
}

fn main() {}
