//! JSON Schema: validation, and the schemas that extensions declare.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod extensions;
mod validation;
