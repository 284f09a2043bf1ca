//! There are three kinds of middleware, and no others can be made.
#![allow(unused)]
use goondan::prelude::*;

struct Prompt;

fn register<K: goondan::middleware::Kind>(kind: K) {}

fn main() {
    register(Prompt);
}
