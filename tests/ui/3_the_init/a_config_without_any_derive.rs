//! A config is checked against its schema, and then deserialized.
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
