//! A host is asked for several things, so they are a list.
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
