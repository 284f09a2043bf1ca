//! LEGACY-OAUTH: extensions ask for access tokens, of an authorization server on this machine.

pub(crate) mod discovery;
mod http;
mod processes;
mod refresh;
mod requests;
mod secrecy;
pub(crate) mod server;
mod sign_in;
pub(crate) mod support;
