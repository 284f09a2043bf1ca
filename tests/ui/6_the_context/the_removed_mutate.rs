//! The point-based registration of old is not offered (API-06).
#![allow(unused)]
use goondan::prelude::*;

fn register(api: &ExtensionApi) {
    let _ = api.pipeline().mutate("step.tools", || {});
}

fn main() {}
