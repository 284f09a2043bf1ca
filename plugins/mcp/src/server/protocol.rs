//! The crate `rmcp`, which speaks the protocol. No other file names it.

pub(super) use rmcp::{ClientHandler, RoleClient, model, service, transport};
