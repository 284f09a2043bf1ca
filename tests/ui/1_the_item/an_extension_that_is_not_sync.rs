//! The future of a turn can move between threads and shares the extension, so the extension is `Sync`.
#![allow(unused)]
use std::cell::RefCell;

use goondan::prelude::*;

struct Notes {
    lines: RefCell<Vec<String>>,
}

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self { lines: RefCell::default() }
    }

    #[tool(effect = read)]
    async fn count(&self) -> Result<usize> {
        Ok(self.lines.borrow().len())
    }
}

fn main() {}
