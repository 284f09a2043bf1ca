//! There is one way to make an extension, wherever it is built.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    #[cfg(unix)]
    fn new() -> Self {
        Self
    }
}

fn main() {}
