//! An extension consists of functions, so the attribute is on an `impl` block or a module.
#![allow(unused)]
#[goondan::extension(name = "notes")]
trait Notes {
    fn lines(&self) -> usize;
}

fn main() {}
