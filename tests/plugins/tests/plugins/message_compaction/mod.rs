//! PATTERN-COMPACT: the extension `message-compaction`.

mod limits;
mod marked;
mod overflow;
mod random;
mod summaries;
pub(crate) mod support;
