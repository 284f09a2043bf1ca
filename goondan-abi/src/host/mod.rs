//! Owns the side of the program: reading libraries, loading them, and what they may call.

mod call;
mod copy;
mod declaration;
mod digest;
mod elf;
mod extension;
mod inspect;
mod load;
mod log;
mod object;
mod record;
mod rest;
mod result;
mod runtime;
mod schemas;
mod table;

pub use inspect::{Inspected, Library};
pub use load::{Loaded, host_table};
pub use record::{ExtensionRecord, MiddlewareRecord, ToolRecord};
pub use schemas::{ExtensionSchemas, ToolSchema};
