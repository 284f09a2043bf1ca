//! The handle of an extension has five members: no resources (API-10).
#![allow(unused)]
use goondan::prelude::*;

fn reach(api: &ExtensionApi) {
    api.resources();
}

fn main() {}
