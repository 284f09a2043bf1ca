//! LEGACY-OAUTH: extensions ask for access tokens, of an authorization server on this machine.

mod http;
mod processes;
mod refresh;
mod requests;
mod secrecy;
mod server;
mod sign_in;
mod support;
