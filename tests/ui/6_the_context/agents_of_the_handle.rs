//! A request to another agent belongs to a turn, so the handle of an extension cannot send it.
#![allow(unused)]
use goondan::prelude::*;

fn reach(api: &ExtensionApi) {
    let _ = api.agents();
}

fn main() {}
