//! `?` converts every `std::error::Error`, which `anyhow::Error`, boxed errors and texts are not.
#![allow(unused)]
use goondan::prelude::*;

/// Like `anyhow::Error`: it implements no `std::error::Error`.
struct AnyError;

fn counted() -> Result<usize, AnyError> {
    Err(AnyError)
}

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn count(&self) -> Result<usize> {
        Ok(counted()?)
    }
}

fn main() {}
