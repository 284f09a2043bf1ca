//! The runtime calls one function to make an extension.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[init]
    async fn open() -> Result<Self> {
        Ok(Self)
    }
}

fn main() {}
