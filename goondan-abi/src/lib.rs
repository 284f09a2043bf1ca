//! The second linkage of goondan: the same extension crate, loaded as a library.
//!
//! A crate of extensions becomes a library by `crate-type = ["rlib", "cdylib"]`; this crate, which `goondan` brings along,
//! exports the one symbol that a library needs. With the feature `host` a program inspects and loads libraries:
//!
//! ```no_run
//! # #[cfg(feature = "host")]
//! # fn main() -> goondan_core::Result<()> {
//! use goondan_abi::Library;
//!
//! // Reads the file; nothing of it runs.
//! let inspected = Library::inspect("plugins/libmessage_window.so")?;
//! for extension in inspected.extensions() {
//!     println!("{} {}", extension.name, extension.version);
//! }
//! let extension = inspected.load()?.extension(Some("message-window"))?;
//! # let builder = goondan_core::Agent::builder("assistant");
//! let builder = builder.described("message-window", extension, serde_json::json!({}));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "host"))]
//! # fn main() {}
//! ```
//!
//! # Layout
//! `table`: the contract · `bytes`, `map`, `future`, `room`, `waker`, `panic`: what both sides make of it · `guest`: the side of the library
//! · `host`: the side of the program.

mod bytes;
mod future;
mod guest;
#[cfg(feature = "host")]
mod host;
mod map;
mod panic;
mod room;
pub mod table;
mod waker;

#[cfg(feature = "host")]
#[doc(hidden)]
pub use host::host_table;
#[cfg(feature = "host")]
pub use host::{
    ExtensionRecord, ExtensionSchemas, Inspected, Library, Loaded, MiddlewareRecord, ToolRecord, ToolSchema,
};
