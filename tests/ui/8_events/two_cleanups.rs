//! The order of two cleanups would be undefined.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[cleanup]
    async fn close(&self) {}

    #[cleanup]
    async fn shut(&self) {}
}

fn main() {}
