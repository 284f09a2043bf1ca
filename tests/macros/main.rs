//! What `#[goondan::extension]` makes: driven through a host that notes the registrations, as the runtime would.
#![cfg(test)]

mod config;
mod names;
mod record;
mod registration;
mod running;
mod support;
