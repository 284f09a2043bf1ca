//! Other calls may still use the extension, so a cleanup borrows it.
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
    async fn close(self) {}
}

fn main() {}
