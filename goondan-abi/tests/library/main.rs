//! Owns the tests of extensions in libraries: built by cargo, loaded by this program, compared with the same crate linked.
#![allow(unsafe_code)]

mod authoring;
mod failures;
mod frozen;
mod inspect;
mod runtime;
mod support;
