//! A config is deserialized from a bundle.
#![allow(unused)]
use goondan::prelude::*;

#[derive(JsonSchema)]
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
