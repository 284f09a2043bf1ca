//! Every build of an extension needs its `#[init]`.
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
