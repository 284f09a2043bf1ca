//! An extension has one config.
#![allow(unused)]
use goondan::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Config {
    lines: usize,
}

#[derive(Deserialize, JsonSchema)]
struct More {
    words: usize,
}

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(config: Config, more: More) -> Self {
        Self
    }
}

fn main() {}
