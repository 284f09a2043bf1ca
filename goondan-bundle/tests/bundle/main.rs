//! Bundles through the public API, from real files: what a good one says, and what each fault says.

// The lints allow `unwrap` in helpers only where `cfg(test)` is written.
#[cfg(test)]
mod fixture;

mod good;

mod document;

mod model;

mod agent;

mod swarm;

#[cfg(test)]
mod file;

mod plain;

mod check;

mod files;

mod configs;

#[cfg(test)]
mod libraries;
mod warnings;

#[cfg(test)]
mod reload;
mod values;

mod order;

#[cfg(test)]
mod layout;

mod schema;
