//! Requests to a server at a URL, with a token of the extension `oauth` if the config wants one.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::protocol::model::ClientJsonRpcMessage;
use super::protocol::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use goondan::BoxFuture;
use goondan_lock::Lock;
use goondan_oauth_client::{Token, TokenRequest, code, get_access_token};
use http::{HeaderName, HeaderValue};

use super::events::{AnyEvents, Events};
use super::post::{Failure, Post};
use super::users::Users;
use crate::config::{Auth, Sizes};

/// The tokens for a server.
#[derive(Clone)]
pub(crate) struct Bearer {
    wanted: TokenRequest,
    /// Whose bus is asked.
    users: Users,
    /// The last token, which ends the session when no conversation uses it any more.
    last: Arc<Lock<Option<Token>>>,
}

impl Bearer {
    pub(crate) fn new(auth: &Auth, users: Users) -> Self {
        Self { wanted: auth.request(), users, last: Arc::default() }
    }

    /// Fails if a person has to sign in first.
    ///
    /// # Errors
    /// Where.
    pub(super) async fn needs_no_sign_in(&self) -> goondan::Result<()> {
        let user = self.users.lock().last().cloned();
        let Some((_, api)) = user else { return Ok(()) };
        match get_access_token(&api, &self.wanted).await {
            Err(error) if *error.code() == *code::AUTHORIZATION_REQUIRED => Err(error),
            // The first request shows the fault.
            _ => Ok(()),
        }
    }

    /// Gets a token, and not `refused`.
    async fn token(&self, refused: Option<&Token>) -> Result<Option<Token>, Failure> {
        let user = self.users.lock().last().cloned();
        let Some((_, api)) = user else { return Ok(self.last.lock().clone()) };
        let wanted = refused.iter().fold(self.wanted.clone(), |wanted, refused| wanted.instead_of(refused));
        let token = get_access_token(&api, &wanted).await.map_err(|error| io::Error::other(error.into_std()))?;
        *self.last.lock() = Some(token.clone());
        Ok(Some(token))
    }
}

/// Sends requests.
#[derive(Clone)]
pub(crate) struct Requests {
    client: reqwest::Client,
    bearer: Option<Bearer>,
    sizes: Sizes,
}

impl Requests {
    pub(crate) fn new(client: reqwest::Client, bearer: Option<Bearer>, sizes: Sizes) -> Self {
        Self { client, bearer, sizes }
    }

    /// Sends a request with a token. One that the server refuses is renewed once.
    // The token is asked for before each request, because it belongs to the user whose turn runs.
    async fn send<T>(
        &self,
        send: impl Fn(Option<String>) -> BoxFuture<'static, Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let text = |token: &Option<Token>| token.as_ref().map(|token| token.text.expose().to_owned());
        let Some(bearer) = &self.bearer else { return send(None).await };
        let token = bearer.token(None).await?;
        match send(text(&token)).await {
            Err(StreamableHttpError::AuthRequired(_)) => send(text(&bearer.token(token.as_ref()).await?)).await,
            outcome => outcome,
        }
    }
}

impl StreamableHttpClient for Requests {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.send(|token| {
            let (client, sizes) = (self.client.clone(), self.sizes);
            let (uri, message, session, headers) = (uri.clone(), message.clone(), session.clone(), headers.clone());
            let post = Post { uri, message, session, token, headers };
            Box::pin(async move { post.send(&client, sizes).await })
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.send(|token| {
            let (client, uri, session, headers) = (self.client.clone(), uri.clone(), session.clone(), headers.clone());
            Box::pin(async move { client.delete_session(uri, session, token, headers).await })
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<AnyEvents, Failure> {
        self.send(|token| {
            let (client, sizes) = (self.client.clone(), self.sizes);
            let (uri, session, event, headers) = (uri.clone(), session.clone(), last_event.clone(), headers.clone());
            Box::pin(async move {
                let size = sizes.message;
                let events =
                    client.get_stream_with_max_sse_event_size(uri, session, event, token, headers, size).await?;
                Ok(Box::pin(Events::resumed(events, sizes)) as AnyEvents)
            })
        })
        .await
    }
}
