//! A request to a route, and what it asks for.

use std::time::Duration;

use axum::RequestExt;
use axum::body::Bytes;
use axum::extract::{FromRequest, OriginalUri, RawPathParams, Request as HttpRequest};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use goondan_core::{AgentName, InstanceKey};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::caller::Caller;
use crate::children::WithChildren;
use crate::problem::{Problem, Result};
use crate::service::Service;
use crate::tokens::Right;
use crate::turns::TurnId;

/// The time that a body may take to arrive.
const ARRIVES: Duration = Duration::from_secs(30);

/// A request to a route.
pub(crate) struct Request {
    pub(crate) service: Service,
    pub(crate) caller: Caller,
    /// The address for the client, also below the path of a program that the routes are mounted in.
    pub(crate) uri: Uri,
    headers: HeaderMap,
    /// The variable parts of the path. `None` for a path without any.
    variables: Option<RawPathParams>,
    /// Empty if the route takes none.
    body: Bytes,
}

/// The part of a request that the description of its route asks for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) token: bool,
    pub(crate) body: bool,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// 401 and 403 without a right to the route, 400 for a path that is no UTF-8, 408 and 413 for the body.
    pub(crate) async fn read(service: Service, mut http: HttpRequest, wanted: Wanted) -> Result<Self> {
        let caller = match wanted.token {
            true => Caller::of(&http, &service)?,
            false => Caller::default(),
        };
        let variables = match http.extract_parts::<RawPathParams>().await {
            Ok(variables) => Some(variables),
            Err(rejection) if rejection.status() == StatusCode::BAD_REQUEST => {
                return Err(Problem::request(rejection.body_text()));
            }
            Err(_) => None,
        };
        let original = http.extensions().get::<OriginalUri>();
        let uri = original.map_or_else(|| http.uri().clone(), |uri| uri.0.clone());
        let headers = std::mem::take(http.headers_mut());
        let body = if wanted.body { body_of(http).await? } else { Bytes::new() };
        Ok(Self { service, caller, uri, headers, variables, body })
    }

    /// Returns a variable part of the path.
    fn variable(&self, name: &str) -> &str {
        let named = self.variables.iter().flatten().filter(|(of, _)| *of == name);
        // The path that the routes are mounted at may have one of this name too, before those of the route.
        named.last().map(|(_, value)| value).unwrap_or_default()
    }

    /// Returns the agent of the path.
    ///
    /// # Errors
    /// 403 for a principal without the right, 404 for an agent that is not served to it.
    pub(crate) fn agent(&self, right: Right) -> Result<AgentName> {
        self.caller.agent(&self.service, self.variable("agent"), right)
    }

    /// Returns the conversation of the path.
    ///
    /// # Errors
    /// As [`Request::agent`], and 404 for the conversation of another principal.
    pub(crate) fn conversation(&self, right: Right) -> Result<(AgentName, InstanceKey)> {
        self.caller.conversation(&self.service, (self.variable("agent"), self.variable("key")), right)
    }

    /// Returns the turn of the path.
    pub(crate) fn turn(&self, right: Right) -> Result<TurnId> {
        let (agent, key) = self.conversation(right)?;
        Ok(TurnId { agent, key, event: self.variable("event").into() })
    }

    /// Returns the conversation that a front end calls `id`, with the agent of the path.
    pub(crate) fn chat(&self, id: &str, right: Right) -> Result<(AgentName, InstanceKey)> {
        self.caller.chat(&self.service, (self.variable("agent"), id), right)
    }

    /// Returns the conversation of a front end that the path names.
    pub(crate) fn chat_of_path(&self, right: Right) -> Result<(AgentName, InstanceKey)> {
        self.chat(self.variable("id"), right)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&HeaderValue> {
        self.headers.get(name)
    }

    /// Returns the parameters of the query: their names and values.
    pub(crate) fn query(&self) -> form_urlencoded::Parse<'_> {
        form_urlencoded::parse(self.uri.query().unwrap_or_default().as_bytes())
    }

    /// Returns whether the request wants the updates of the agents that its turn asks.
    pub(crate) fn children(&self) -> Result<WithChildren> {
        WithChildren::of(self.query())
    }

    /// Returns the body, which is JSON, whatever the request says of its type.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        let read = serde_json::from_slice(&self.body);
        read.map_err(|error| Problem::request(format!("the body cannot be read: {error}")))
    }
}

async fn body_of(http: HttpRequest) -> Result<Bytes> {
    let late = || Problem::body(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    let body = timeout(ARRIVES, Bytes::from_request(http, &())).await.map_err(|_| late())?;
    body.map_err(|rejection| Problem::body(rejection.status(), rejection.body_text()))
}
