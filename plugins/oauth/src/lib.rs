//! Gets, keeps and refreshes OAuth access tokens for other extensions.
//!
//! They ask by the crate `goondan-oauth-client`.
//!
//! # Layout
//! In the order of the data:
//!
//! - `config`: the settings of the apps in a bundle.
//! - `app`: the apps, checked.
//! - `extension`: takes requests, and decides on whose behalf they are.
//! - `access`: the answer to a request: a token, or the sign-in that it needs.
//! - `tokens`: the token for a request: a stored one, one that is refreshed, or none until a person signs in.
//! - `narrowed`: tokens with fewer scopes than were granted.
//! - `sign_in`: the page or the code by which a person allows an access.
//! - `discovery`: the announcement of a resource about its authorization server, and that about itself.
//! - `registration`: the registration of an app with such a server.
//! - `callback`: the listener for the browser of that person.
//! - `server`: requests to an authorization server.
//! - `kept`: the stored records of an app and its owner.
//! - `store`: where tokens are kept.
//! - `seal`: the encryption of the stored records.
//! - `failure`: why there is no token.

mod access;
mod app;
mod callback;
mod config;
mod discovery;
mod extension;
mod failure;
mod kept;
mod narrowed;
mod registration;
mod seal;
mod server;
mod sign_in;
mod store;
mod tokens;

pub use config::{AppConfig, Config, Flow, StoreConfig, Subject};
pub use extension::OAuth;
