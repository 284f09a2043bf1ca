//! The name is the identity: bundles, state and logs carry it.
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
