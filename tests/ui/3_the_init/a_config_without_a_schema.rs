//! A config is checked against its schema before the extension runs.
#![allow(unused)]
use goondan::prelude::*;

#[derive(Deserialize)]
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
