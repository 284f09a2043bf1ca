//! A trait decides which functions its `impl` has.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Clone for Notes {
    #[init]
    fn clone(&self) -> Self {
        Self
    }
}

fn main() {}
