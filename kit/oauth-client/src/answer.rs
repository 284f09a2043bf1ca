//! The answer of the extension `oauth`.

use goondan::Secret;
use serde::{Deserialize, Serialize, Serializer};

/// The answer to a request for a token, which is the payload of the event `oauth.answer.<id>`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Answer {
    /// The request arrived, and another answer follows.
    Accepted,
    /// The token.
    Ready {
        /// The token.
        token: Token,
    },
    /// A person has to allow the access first.
    AuthorizationRequired {
        /// Where.
        authorization: Authorization,
    },
    /// There is no token.
    Error {
        /// One of the codes in [`code`](crate::code).
        code: String,
        /// The fault.
        message: String,
        /// The remedy.
        suggestion: String,
    },
}

/// An access token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// The token, which is masked in all output as long as a clone of this exists.
    #[serde(serialize_with = "exposed")]
    pub text: Secret,
    /// Its type, nearly always `Bearer`.
    pub kind: String,
    /// When it expires, in seconds since 1970; `None` if that is not known.
    pub expires_at: Option<u64>,
    /// The scopes that it has.
    pub scopes: Vec<String>,
}

/// Where a person allows an access.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Authorization {
    /// Identifies the attempt.
    pub session: String,
    /// The page to open in a browser.
    pub url: String,
    /// Until when, in seconds since 1970.
    pub expires_at: u64,
    /// The instructions for the person.
    pub message: String,
}

/// Writes the text of a secret: events carry tokens.
fn exposed<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose())
}
