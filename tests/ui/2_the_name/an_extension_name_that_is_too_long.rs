//! A name has at most 63 characters.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes-about-everything-that-was-said-in-every-meeting-of-this-year")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }
}

fn main() {}
