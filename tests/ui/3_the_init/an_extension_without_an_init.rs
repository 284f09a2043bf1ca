//! The runtime cannot guess how an extension is made.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[tool]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
