//! `#[init]` may store the handle, so it takes it by value.
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
