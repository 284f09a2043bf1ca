//! An extension is an `impl` block or a module, because its functions are what counts.
#![allow(unused)]
#[goondan::extension(name = "notes")]
struct Notes {
    lines: Vec<String>,
}

fn main() {}
