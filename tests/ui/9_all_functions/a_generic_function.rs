//! The generated call has no type arguments.
#![allow(unused)]
use goondan::prelude::*;
use serde::de::DeserializeOwned;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn add<T: DeserializeOwned>(&self, note: T) -> Result<()> {
        Ok(())
    }
}

fn main() {}
