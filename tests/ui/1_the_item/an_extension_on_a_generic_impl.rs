//! Each name has one static descriptor, which cannot depend on a type parameter.
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
