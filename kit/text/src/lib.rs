//! Long texts for language models: excerpts that say where the rest is, and files for the whole of them. For the
//! ready-made extensions of goondan and for those of users.
//!
//! ```
//! use goondan::prelude::*;
//! use goondan_text::{Excerpt, NumberedFile, Place};
//!
//! /// Searches the manuals.
//! #[goondan::extension(name = "manuals")]
//! pub mod manuals {
//!     use super::*;
//!
//!     /// The most characters that the model reads.
//!     const LONGEST: usize = 20_000;
//!
//!     /// Returns a chapter of a manual.
//!     #[tool(effect = read)]
//!     async fn chapter(ctx: &ToolContext<'_>) -> Result<String> {
//!         let chapter = "The pump is to be greased every year.\n".repeat(1000);
//!         if chapter.chars().count() <= LONGEST {
//!             return Ok(chapter);
//!         }
//!         let file = NumberedFile::new(ctx.workdir()?, ["chapter", ctx.call_id().as_str()], "txt");
//!         let place = Place::File(file.within(ctx.max_output_bytes()).write(chapter.as_bytes())?);
//!         Ok(Excerpt { text: &chapter, place: &place }.both_ends(LONGEST))
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! # Layout
//! - `excerpt`: cuts a text
//! - `note`: the note that the model reads where a text was cut
//! - `file`: new files for whole texts
//! - `long`: a text that is written piece by piece
//! - `visible`: removes what a reader would not see

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod excerpt;
mod file;
mod long;
mod note;
mod visible;

pub use excerpt::Excerpt;
pub use file::NumberedFile;
pub use long::LongText;
pub use note::{LeftOut, Place};
pub use visible::visible;
