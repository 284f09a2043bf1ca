//! A module has no value, so there is no `self`.
#![allow(unused)]
#[goondan::extension(name = "notes")]
mod notes {
    use goondan::prelude::*;

    #[tool]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
