//! What `#[goondan::extension]` makes: driven through a host that notes the registrations, as the runtime would.
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
