//! There is one descriptor for a name, so nothing in it can depend on a parameter.
#![allow(unused)]
use goondan::prelude::*;

struct Notes<T>(T);

#[goondan::extension(name = "notes")]
impl<T: Default> Notes<T> {
    #[init]
    fn new() -> Self {
        Self(T::default())
    }
}

fn main() {}
