//! The `impl` of a trait has no place for the functions of an extension.
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
