//! Reads the tree of a document into typed values, and reports its faults.

mod cursor;
pub(crate) use cursor::Cursor;

mod map;
pub(crate) use map::MapReader;

mod document;
pub(crate) use document::Document;

mod reference;
pub(crate) use reference::{Names, Resource};

mod places;
pub(crate) use places::ConfigPlaces;

mod value;
pub(crate) use value::{FetchedConfig, read_sources};
pub use value::{SourcedValue, ValueSource};
