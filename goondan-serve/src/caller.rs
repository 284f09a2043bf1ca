//! The sender of a request, and its conversations.
// SERVE-03

use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};
use goondan_core::{AgentName, Auth, InstanceKey, Principal};

use crate::problem::{Problem, Result};
use crate::service::Service;
use crate::tokens::{Grant, Right};

/// Who sends a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// `None` if the service has no tokens.
    grant: Option<Arc<Grant>>,
}

impl Caller {
    /// Returns the name of the principal, if the service has tokens.
    pub(crate) fn principal(&self) -> Option<&str> {
        self.grant.as_ref().map(|grant| grant.name())
    }

    /// Returns the agent that a path names.
    ///
    /// # Errors
    /// 403 for a principal without the right, 404 for an agent that is not served to it.
    pub(crate) fn agent(&self, service: &Service, name: &str, right: Right) -> Result<AgentName> {
        if self.grant.as_ref().is_some_and(|grant| !grant.may(right)) {
            return Err(Problem::right(right));
        }
        let mut served = service.names().into_iter();
        let agent = served.find(|agent| agent.as_str() == name).filter(|agent| self.sees(agent));
        agent.ok_or_else(|| Problem::not_found("agent"))
    }

    /// Returns whether an agent is served to the principal.
    pub(crate) fn sees(&self, agent: &AgentName) -> bool {
        self.grant.as_ref().is_none_or(|grant| grant.has_agent(agent))
    }

    /// Returns whether a conversation is one of the principal's.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.grant.as_ref().is_none_or(|grant| grant.has_key(key))
    }

    /// Returns the prefix of all keys of the principal's conversations.
    pub(crate) fn beginning(&self) -> &str {
        self.grant.as_ref().map(|grant| grant.beginning()).unwrap_or_default()
    }

    /// Returns the conversation that a path names. That of another principal is none.
    pub(crate) fn conversation(
        &self,
        service: &Service,
        (agent, key): (&str, &str),
        right: Right,
    ) -> Result<(AgentName, InstanceKey)> {
        let agent = self.agent(service, agent, right)?;
        match self.has_key(key) {
            true => Ok((agent, InstanceKey::new(key)?)),
            false => Err(Problem::not_found("conversation")),
        }
    }

    /// Returns the conversation that a front end calls `id`.
    pub(crate) fn chat(
        &self,
        service: &Service,
        (agent, id): (&str, &str),
        right: Right,
    ) -> Result<(AgentName, InstanceKey)> {
        let key = self.grant.as_ref().map_or_else(|| id.to_owned(), |grant| grant.key_of(id));
        self.conversation(service, (agent, &key), right)
    }

    /// Returns the sender of a request.
    ///
    /// # Errors
    /// 401 without a token that is known, 403 from a page or for a host that the service does not know.
    pub(crate) fn of(request: &Request, service: &Service) -> Result<Self> {
        let headers = request.headers();
        check_origin(headers, service)?;
        if let Some(grant) = request.extensions().get::<Grant>() {
            return Ok(Self { grant: Some(Arc::new(grant.clone())) });
        }
        let Some(tokens) = service.tokens_of() else {
            // A page whose name was made to mean this machine has another name in its requests.
            return match text(headers, &HOST).is_none_or(is_loopback) {
                true => Ok(Self::default()),
                false => Err(Problem::forbidden("the request is for another host")),
            };
        };
        let token = text(headers, &AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let grant = token.and_then(|token| tokens.grant(token.trim())).ok_or_else(Problem::token)?;
        Ok(Self { grant: Some(Arc::clone(grant)) })
    }

    pub(crate) fn auth(&self) -> Option<Auth> {
        self.principal().map(|name| Auth::new(Principal::new("user", name)))
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
