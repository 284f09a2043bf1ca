//! Who sends a request, and what of it that principal may see.
// SERVE-03

use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use goondan_core::{Auth, InstanceKey, Principal};

use crate::problem::{Problem, Result};
use crate::service::Service;

/// Who sends a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The name of the principal; `None` if the service has no tokens.
    pub(crate) principal: Option<String>,
}

impl Caller {
    /// Returns the conversation that a path names. That of another principal is none.
    pub(crate) fn key(&self, key: &str) -> Result<InstanceKey> {
        let own = |principal: &String| key.strip_prefix(principal.as_str()).is_some_and(|rest| rest.starts_with(':'));
        if !self.principal.as_ref().is_none_or(own) {
            return Err(Problem::not_found("conversation"));
        }
        Ok(InstanceKey::new(key)?)
    }

    /// Returns the conversation that a front end calls `id`.
    pub(crate) fn key_of(&self, id: &str) -> Result<InstanceKey> {
        match &self.principal {
            Some(principal) => Ok(InstanceKey::new(&format!("{principal}:{id}"))?),
            None => Ok(InstanceKey::new(id)?),
        }
    }

    pub(crate) fn auth(&self) -> Option<Auth> {
        self.principal.as_ref().map(|name| Auth::new(Principal::new("user", name)))
    }
}

impl FromRequestParts<Service> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self> {
        let headers = &parts.headers;
        check_origin(headers, service)?;
        let Some(tokens) = service.tokens_of() else {
            // A page whose name was made to mean this machine has another name in its requests.
            return match text(headers, &HOST).is_none_or(is_loopback) {
                true => Ok(Self::default()),
                false => Err(Problem::forbidden("the request is for another host")),
            };
        };
        let token = text(headers, &AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let principal = token.and_then(|token| tokens.principal(token.trim())).ok_or_else(Problem::token)?;
        Ok(Self { principal: Some(principal.to_owned()) })
    }
}

/// Refuses requests of pages of other origins.
fn check_origin(headers: &HeaderMap, service: &Service) -> Result<()> {
    let Some(origin) = text(headers, &ORIGIN) else { return Ok(()) };
    let host = text(headers, &HOST).unwrap_or_default();
    let is_own = origin.split_once("://").is_some_and(|(_, of)| of == host);
    match is_own || service.allows_origin(origin) {
        true => Ok(()),
        false => Err(Problem::forbidden(format!("pages of {origin} may not send requests"))),
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Returns whether `host` is a name of this machine that no other can have.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    matches!(name, Some("localhost" | "127.0.0.1" | "::1"))
}
