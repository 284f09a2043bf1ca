//! PATTERN-SKILL: the extension `skills` with folders of its own.

mod context;
mod discovery;
mod kept;
mod run;
mod support;
mod tools;
