//! A misspelled option would be ignored in silence.
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
