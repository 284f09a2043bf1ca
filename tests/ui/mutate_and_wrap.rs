//! The point-based registration of old is not offered (API-06).
use goondan::prelude::*;

fn register(api: &ExtensionApi) {
    api.pipeline().mutate("step.tools", || {});
    api.pipeline().wrap("step.llmCall", || {});
}

fn main() {}
