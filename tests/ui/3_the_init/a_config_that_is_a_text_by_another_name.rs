//! A config is a JSON object, whatever the name of its type.
#![allow(unused)]
use goondan::prelude::*;

type Path = String;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(path: Path) -> Self {
        Self
    }
}

fn main() {}
