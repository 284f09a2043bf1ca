//! Before `#[init]` there is no extension.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(&self) -> Self {
        Self
    }
}

fn main() {}
