//! The data that is kept of an app and its owner.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use goondan::Secret;
use goondan_oauth_client::{Token, TokenRequest};
use serde::{Deserialize, Serialize};

use crate::app::Client;
use crate::seal::exposed;

/// On whose behalf a token is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Global,
    /// The kind and the id of a principal, such as `user:42`.
    User(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::User(user) => user,
        })
    }
}

/// The key of a token with fewer scopes than were granted: the app, the owner, and the scopes.
pub(crate) type NarrowedKey = (String, Owner, Vec<String>);

/// The grant of an authorization server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Granted {
    pub(crate) token: Token,
    /// In seconds since 1970.
    pub(crate) issued_at: u64,
    #[serde(serialize_with = "exposed")]
    pub(crate) refresh: Option<Secret>,
    /// The client of an announced server. Only it can refresh the token.
    #[serde(default)]
    pub(crate) issued_to: Option<Client>,
}

impl Granted {
    /// Returns whether the token can be used now, if not for as long as `request` says.
    pub(crate) fn is_valid(&self, request: &TokenRequest) -> bool {
        let refused = request.refused.as_ref().is_some_and(|refused| refused.expose() == self.token.text.expose());
        !refused && self.token.expires_at.is_none_or(|expires_at| expires_at > now())
    }

    /// Returns whether the token has all scopes that `request` names, and more.
    pub(crate) fn exceeds(&self, request: &TokenRequest) -> bool {
        exceeds(&self.token.scopes, request)
    }

    /// Returns whether the token can be used as long as `request` says. Of a token that lives less than twice as long,
    /// half of its life must be left: a new one would not live longer.
    pub(crate) fn serves(&self, request: &TokenRequest) -> bool {
        let lasts = self.token.expires_at.is_none_or(|expires_at| {
            let life = expires_at.saturating_sub(self.issued_at);
            expires_at.saturating_sub(now()) > request.min_ttl_seconds.min(life / 2)
        });
        lasts && self.is_valid(request)
    }
}

/// Returns whether all scopes that `request` names are among these, and others too. A request that names none is for
/// all of them.
pub(crate) fn exceeds(scopes: &[String], request: &TokenRequest) -> bool {
    !request.scopes.is_empty()
        && request.scopes.iter().all(|scope| scopes.contains(scope))
        && scopes.iter().any(|scope| !request.scopes.contains(scope))
}

/// The registration of the app at an authorization server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Registration {
    pub(crate) issuer: String,
    /// The port to which browsers are sent back.
    pub(crate) port: u16,
    pub(crate) client_id: String,
    #[serde(serialize_with = "exposed")]
    pub(crate) client_secret: Option<Secret>,
    pub(crate) secret_in_body: bool,
    /// In seconds since 1970.
    pub(crate) expires_at: Option<u64>,
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
