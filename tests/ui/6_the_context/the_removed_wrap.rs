//! The old point-based registration is not offered (API-06).
#![allow(unused)]
use goondan::prelude::*;

fn register(api: &ExtensionApi) {
    let _ = api.pipeline().wrap("step.llmCall", || {});
}

fn main() {}
