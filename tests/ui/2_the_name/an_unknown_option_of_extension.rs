//! A misspelled option would silently have no effect.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(nam = "notes", name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }
}

fn main() {}
