//! `#[init]` takes the config (API-02).
#![allow(unused)]
use goondan::prelude::*;

fn reach(api: &ExtensionApi) {
    api.config();
}

fn main() {}
