//! A tool belongs to an extension, which registers it.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

impl Notes {
    #[tool]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
