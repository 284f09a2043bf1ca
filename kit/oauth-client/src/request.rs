//! Requests for tokens.

use std::time::Duration;

use goondan::name::EventId;
use goondan::prelude::*;
use goondan::{Error, Secret};
use serde::Serializer;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::answer::{Answer, Token};
use crate::code;

/// The longest time in which a request may arrive.
const ARRIVAL: Duration = Duration::from_secs(5);
/// The longest time of the answer.
const ANSWER: Duration = Duration::from_secs(60);

/// A request for an access token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TokenRequest {
    /// The app, as the config of the extension `oauth` names it.
    pub app: String,
    /// The scopes that the token must have; some of the scopes of the app.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The shortest time that the token must be valid, in seconds. One that expires earlier is refreshed.
    #[serde(default = "min_ttl_seconds")]
    pub min_ttl_seconds: u64,
    /// A token that was refused, and is not returned again.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exposed")]
    pub refused: Option<Secret>,
}

fn min_ttl_seconds() -> u64 {
    300
}

fn exposed<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

impl TokenRequest {
    /// Returns a request for a token of `app` that is valid for five minutes.
    pub fn new(app: impl Into<String>) -> Self {
        Self { app: app.into(), scopes: Vec::new(), min_ttl_seconds: min_ttl_seconds(), refused: None }
    }

    /// Sets what the token must allow.
    #[must_use]
    pub fn scopes<S: Into<String>>(self, scopes: impl IntoIterator<Item = S>) -> Self {
        Self { scopes: scopes.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets how long the token must be valid.
    #[must_use]
    pub fn min_ttl(self, min_ttl: Duration) -> Self {
        Self { min_ttl_seconds: min_ttl.as_secs(), ..self }
    }

    /// Asks for another token than `token`, which a server refused.
    #[must_use]
    pub fn instead_of(self, token: &Token) -> Self {
        Self { refused: Some(token.text.clone()), ..self }
    }
}

/// Returns an access token.
///
/// # Errors
/// The codes in [`code`]. That of `authorizationRequired` has the URL that a person has to open.
pub async fn get_access_token(api: &ExtensionApi, request: &TokenRequest) -> Result<Token> {
    token(request, ask(api, request).await?)
}

/// Returns the token of an answer.
pub(crate) fn token(request: &TokenRequest, answer: Answer) -> Result<Token> {
    match answer {
        Answer::Ready { token } => Ok(token),
        Answer::AuthorizationRequired { authorization } => {
            let message = format!("`{}` has to be allowed first: {}", request.app, authorization.message);
            Err(Error::new(code::AUTHORIZATION_REQUIRED, message).suggest("tell the user, and try again after that"))
        }
        Answer::Error { code, message, suggestion } => {
            let retryable = code == code::REFRESH_FAILED;
            Err(Error::new(code, message).suggest(suggestion).retryable(retryable))
        }
        Answer::Accepted => Err(unanswered("the extension `oauth` only answered that it would answer")),
    }
}

/// Asks for an access token, and returns the answer as it is.
///
/// # Errors
/// `oauthUnanswered` when there is no answer.
pub async fn ask(api: &ExtensionApi, request: &TokenRequest) -> Result<Answer> {
    let id = EventId::random();
    let (sender, mut answers) = mpsc::unbounded_channel();
    let forward = move |event: Event| {
        // An answer that is late has no receiver any more.
        std::future::ready(event.payload::<Answer>().map(|answer| drop(sender.send(answer))))
    };
    // The subscription comes before the question, so that no answer is missed.
    let _subscription = api.events().on(&format!("oauth.answer.{id}"), forward)?;
    api.events().emit("oauth.request", (&id, request));
    let first = timeout(ARRIVAL, answers.recv()).await;
    match first.map_err(|_| unanswered("no extension of the conversation answers `oauth.request`"))? {
        Some(Answer::Accepted) => {}
        Some(answer) => return Ok(answer),
        None => return Err(unanswered("the conversation was closed")),
    }
    let answer = timeout(ANSWER, async {
        // An extension that is being replaced answers too.
        loop {
            match answers.recv().await {
                Some(Answer::Accepted) => {}
                answer => return answer,
            }
        }
    });
    let answer = answer.await.map_err(|_| unanswered(&format!("there was no token within {} s", ANSWER.as_secs())))?;
    answer.ok_or_else(|| unanswered("the conversation was closed"))
}

fn unanswered(message: &str) -> Error {
    Error::new(code::UNANSWERED, message.to_owned())
        .suggest("add the extension `oauth` to the agent, before extensions that ask in `#[init]`")
}
