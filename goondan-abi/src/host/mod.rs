//! The side of the program: reads library files, loads libraries, calls them, and implements the functions that they
//! call.
//!
//! - `inspect` over `elf`, `declaration`, `record`, `schemas`, `digest`: reads a file without running it
//! - `load` over `copy`, `descriptor`: loads a library
//! - `object` over `call`, `next`, `result`, `kind`: calls objects of the library
//! - `table` over `extension`, `log`, `secret`: the functions that libraries call
//! - `runtime`: the tokio runtime of the program around all of it

mod call;
mod copy;
mod declaration;
mod descriptor;
mod digest;
mod elf;
mod extension;
mod inspect;
mod kind;
mod load;
mod log;
mod members;
mod next;
mod object;
mod record;
mod result;
mod runtime;
mod schemas;
mod secret;
mod table;
mod transform;

pub use inspect::{Inspected, Library};
pub use load::{Loaded, host_table};
pub use record::{ExtensionRecord, MiddlewareRecord, ToolRecord};
pub use schemas::{ExtensionSchemas, ToolSchema};
