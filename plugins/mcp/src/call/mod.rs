//! The calls of the model.

mod asked;
mod handlers;
mod reply;

pub(crate) use handlers::{Call, ConfiguredServer, Extra, ExtraTool};
