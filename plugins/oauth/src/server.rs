//! Requests to an authorization server.

use std::error::Error as _;
use std::time::Duration;

use form_urlencoded::{Serializer, byte_serialize};
use goondan::{Result, Secret, json};
use goondan_oauth_client::{Token, code};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::app::{App, Client};
use crate::failure::Failure;
use crate::kept::{Granted, now};

/// Sends requests to authorization servers.
#[derive(Clone, Debug)]
pub(crate) struct Server(pub(crate) reqwest::Client);

/// The longest answer that is read.
const LONGEST: usize = 262_144;

/// Why a server gave nothing.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It answered with an error, by a name of RFC 6749 or RFC 8628.
    Named { error: String, description: String },
    /// It answered with something else.
    Unclear { status: StatusCode },
    /// It did not answer.
    Unreachable { reason: String },
}

/// A code that a person enters.
#[derive(Debug, Deserialize)]
pub(crate) struct DeviceCode {
    pub(crate) device_code: Secret,
    pub(crate) user_code: String,
    #[serde(alias = "verification_url")]
    pub(crate) verification_uri: String,
    pub(crate) verification_uri_complete: Option<String>,
    pub(crate) expires_in: u64,
    #[serde(default = "interval")]
    pub(crate) interval: u64,
}

fn interval() -> u64 {
    5
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret,
    #[serde(default = "bearer")]
    token_type: String,
    expires_in: Option<u64>,
    refresh_token: Option<Secret>,
    scope: Option<String>,
}

fn bearer() -> String {
    "Bearer".to_owned()
}

#[derive(Deserialize)]
struct ErrorResponse {
    error: String,
    #[serde(default)]
    error_description: String,
}

impl Server {
    /// # Errors
    /// When the root certificates of the system cannot be read.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(goondan_http::builder()?.timeout(Duration::from_secs(20)).build()?))
    }

    /// Gets a token for a grant, which is for `scopes` unless the server says otherwise. What a refresh does not say is
    /// as it is in `before`.
    pub(crate) async fn token(
        &self,
        client: &Client,
        scopes: &[String],
        form: &[(&str, &str)],
        before: Option<&Granted>,
    ) -> Result<Granted, Refusal> {
        let response: TokenResponse = self.post(client, client.token_url.as_str(), form).await?;
        let now = now();
        let scopes = match (response.scope, before) {
            (Some(scope), _) => scope.split([' ', ',']).filter(|scope| !scope.is_empty()).map(str::to_owned).collect(),
            (None, Some(before)) => before.token.scopes.clone(),
            (None, None) => scopes.to_vec(),
        };
        let expires_at = response.expires_in.map(|seconds| now.saturating_add(seconds));
        let refresh = response.refresh_token.or_else(|| before?.refresh.clone());
        // Nearly all servers write it in lower case, and nearly all resource servers want it so.
        let kind = if response.token_type.eq_ignore_ascii_case("bearer") { bearer() } else { response.token_type };
        let token = Token { text: response.access_token, kind, expires_at, scopes };
        Ok(Granted { token, issued_at: now, refresh, issued_to: before.and_then(|before| before.issued_to.clone()) })
    }

    /// Gets a code for a person to enter.
    pub(crate) async fn device_code(&self, client: &Client, url: &Url, scope: &str) -> Result<DeviceCode, Refusal> {
        self.post(client, url.as_str(), &[("scope", scope)]).await
    }

    async fn post<T: DeserializeOwned>(&self, client: &Client, url: &str, form: &[(&str, &str)]) -> Result<T, Refusal> {
        let request = self.0.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let request = request.body(encoded(client, form));
        let request = match &client.secret {
            // RFC 6749, 2.3.1: both are encoded first.
            Some(secret) if !client.secret_in_body => {
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                request.basic_auth(encoded(&client.id), Some(encoded(secret.expose())))
            }
            _ => request,
        };
        self.ask(request).await
    }

    /// Sends a request whose answer is a `T`, or an error of RFC 6749.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Refusal> {
        let (status, body) = self.send(request).await?;
        // Some servers answer with an error and the status 200.
        if let Ok(ErrorResponse { error, error_description }) = json::from_slice(&body) {
            return Err(Refusal::Named { error, description: error_description });
        }
        let answer = status.is_success().then(|| json::from_slice(&body).ok()).flatten();
        answer.ok_or(Refusal::Unclear { status })
    }

    /// Sends a request, and returns the status and the body of the answer.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), Refusal> {
        let unreachable = |error: reqwest::Error| Refusal::Unreachable { reason: reason(&error.without_url()) };
        let mut response: Response = request.header(ACCEPT, "application/json").send().await.map_err(unreachable)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > LONGEST {
                return Err(Refusal::Unreachable { reason: format!("its answer is longer than {LONGEST} bytes") });
            }
            body.extend_from_slice(&chunk);
        }
        Ok((response.status(), body))
    }
}

impl Refusal {
    /// Returns whether the server answered with this error.
    pub(crate) fn is(&self, name: &str) -> bool {
        matches!(self, Self::Named { error, .. } if error == name)
    }

    /// Returns the failure for a request.
    pub(crate) fn failure(&self, app: &App) -> Failure {
        let name = &app.name;
        match self {
            Self::Named { error, description } => {
                let code = match error.as_str() {
                    "invalid_grant" => code::TOKEN_REVOKED,
                    "invalid_scope" => code::SCOPE_NOT_ALLOWED,
                    "invalid_client" | "invalid_request" | "unauthorized_client" | "unsupported_grant_type" => {
                        code::CONFIGURATION_ERROR
                    }
                    _ => code::REFRESH_FAILED,
                };
                let message = format!("the authorization server of `{name}` answers `{error}` {description}");
                Failure::new(code, message.trim_end())
            }
            Self::Unclear { status } => {
                let message = format!("the authorization server of `{name}` answers {status}, and no token");
                Failure::new(code::REFRESH_FAILED, message)
            }
            Self::Unreachable { reason } => {
                let message = format!("the authorization server of `{name}` cannot be reached: {reason}");
                Failure::new(code::REFRESH_FAILED, message)
            }
        }
    }
}

/// Returns the body of a request. An app without a secret names itself in it.
fn encoded(client: &Client, form: &[(&str, &str)]) -> String {
    let secret = client.secret.as_ref().filter(|_| client.secret_in_body).map(Secret::expose);
    let id = (client.secret.is_none() || client.secret_in_body).then_some(client.id.as_str());
    let resource = client.resource.as_deref();
    let more = [("client_id", id), ("client_secret", secret), ("resource", resource)];
    let more = more.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let pairs = form.iter().copied().filter(|(_, value)| !value.is_empty()).chain(more);
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}

pub(crate) fn reason(error: &reqwest::Error) -> String {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    reason
}
