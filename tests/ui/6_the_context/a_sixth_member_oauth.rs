//! The handle of an extension has five members: no OAuth (API-03).
#![allow(unused)]
use goondan::prelude::*;

fn reach(api: &ExtensionApi) {
    api.oauth();
}

fn main() {}
