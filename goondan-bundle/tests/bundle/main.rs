//! Tests of bundles through the public API, with real files.

// The lints allow `unwrap` in helpers only under `cfg(test)`.
#[cfg(test)]
mod fixture;

mod good;

#[cfg(test)]
mod coverage;
mod document;

mod model;

#[cfg(test)]
mod advice;
mod agent;

mod server;
mod swarm;

#[cfg(test)]
mod file;

mod plain;

mod check;

mod files;

mod configs;

#[cfg(test)]
mod libraries;

#[cfg(test)]
mod capabilities;
mod warnings;

#[cfg(test)]
mod records;
#[cfg(test)]
mod reload;
mod values;

mod order;

#[cfg(test)]
mod schema;
