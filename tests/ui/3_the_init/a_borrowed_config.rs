//! A config is deserialized for `#[init]`, which owns it.
#![allow(unused)]
use goondan::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Config {
    lines: usize,
}

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(config: &Config) -> Self {
        Self
    }
}

fn main() {}
