//! Tests of what `#[goondan::extension]` generates. A recorder replaces the runtime: it collects the registrations, and
//! tests call them as the runtime would.
#![cfg(test)]

mod config;
mod events;
mod module;
mod names;
mod places;
mod record;
mod registration;
mod running;
mod shadowed;
mod support;
mod tools;
mod twins;
