//! F-BASE: the tools for files.

mod bundle;
mod escapes;
mod files;
mod protected;
mod shown;
