//! A bundle writes a config as a mapping, so its type is a struct.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(max: usize) -> Self {
        Self
    }
}

fn main() {}
