//! LEGACY-OAUTH: extensions ask for access tokens, of an authorization server on this machine.

mod requests;
mod server;
mod sign_in;
mod support;
