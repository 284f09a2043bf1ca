//! Names of extensions are words in lower case, joined by hyphens.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "MeetingNotes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }
}

fn main() {}
