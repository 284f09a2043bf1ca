//! A config is read from a bundle, and checked before.
#![allow(unused)]
use goondan::prelude::*;

struct Config {
    lines: usize,
}

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(config: Config) -> Self {
        Self
    }
}

fn main() {}
