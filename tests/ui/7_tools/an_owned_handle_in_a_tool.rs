//! Only `#[init]` takes the handle by value; other functions borrow it.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn count(&self, api: ExtensionApi) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
