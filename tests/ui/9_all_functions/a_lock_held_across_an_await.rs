//! A turn can move to another thread at every `.await`, so its future must be `Send`.
#![allow(unused)]
use goondan::prelude::*;
use std::sync::Mutex;

struct Notes;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn wait(&self) -> Result<usize> {
        let lines = LINES.lock().unwrap();
        std::future::ready(()).await;
        Ok(lines.len())
    }
}

fn main() {}
