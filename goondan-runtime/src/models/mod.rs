//! Models that need no provider: one that plays a script, and one that records another.

mod recorded;
mod scripted;

pub use recorded::RecordedModel;
pub use scripted::{ScriptItem, ScriptedModel};
