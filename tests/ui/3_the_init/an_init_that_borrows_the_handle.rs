//! The handle is there to be kept, so `#[init]` gets its own.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(api: &ExtensionApi) -> Self {
        Self
    }
}

fn main() {}
