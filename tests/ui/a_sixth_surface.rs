//! The handle of an extension has five members: no config, no OAuth, no resources (API-02, API-03, API-10).
use goondan::prelude::*;

fn reach(api: &ExtensionApi) {
    api.config();
    api.oauth();
    api.resources();
}

fn main() {}
