//! F-BASE: the tools for files.

mod escapes;
mod files;
mod protected;
mod shown;
