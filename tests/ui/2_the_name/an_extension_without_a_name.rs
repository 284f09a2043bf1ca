//! The name is the identity of an extension in bundles, state and logs.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }
}

fn main() {}
