//! Access tokens for the ready-made extensions of goondan and for those of users, from the extension `oauth` of the
//! conversation.
//!
//! ```
//! use goondan::prelude::*;
//! use goondan_oauth_client::{TokenRequest, get_access_token};
//!
//! /// Sends a request on behalf of the user.
//! async fn star(api: &ExtensionApi) -> Result<()> {
//!     let token = get_access_token(api, &TokenRequest::new("github").scopes(["repo"])).await?;
//!     let _authorization = format!("Bearer {}", token.text.expose());
//!     Ok(())
//! }
//! ```
//!
//! Tools, middlewares and event handlers ask in the same way, linked or in a library: the request and the answer are
//! events of the conversation. The extension `oauth` decides on whose behalf the token is, and which scopes an app has.

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
// LEGACY-OAUTH-01, LEGACY-OAUTH-02

mod answer;
mod in_call;
mod request;

pub use answer::{Answer, Authorization, Token};
pub use in_call::{allow, get_access_token_in_call};
pub use request::{TokenRequest, ask, get_access_token};

/// The codes of errors with which the extension `oauth` answers.
pub mod code {
    /// The config of the extension has no such app.
    pub const APP_NOT_FOUND: &str = "oauthAppNotFound";
    /// The app acts on behalf of a user, and no turn of a user runs.
    pub const SUBJECT_UNAVAILABLE: &str = "subjectUnavailable";
    /// The app, or what the user allowed, has not all of the scopes.
    pub const SCOPE_NOT_ALLOWED: &str = "scopeNotAllowed";
    /// The authorization server has revoked the access.
    pub const TOKEN_REVOKED: &str = "tokenRevoked";
    /// No token was obtained this time; a later request may succeed.
    pub const REFRESH_FAILED: &str = "refreshFailed";
    /// The authorization server gives no device codes.
    pub const DEVICE_CODE_UNSUPPORTED: &str = "deviceCodeUnsupported";
    /// The config of the extension has to be changed.
    pub const CONFIGURATION_ERROR: &str = "configurationError";
    /// A person has to allow the access first. [`ask`](crate::ask) returns it as a value.
    pub const AUTHORIZATION_REQUIRED: &str = "authorizationRequired";
    /// No extension of the conversation answered.
    pub const UNANSWERED: &str = "oauthUnanswered";
}
