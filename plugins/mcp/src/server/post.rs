//! A request to a server at a URL, whose answer has a limit.
//!
//! It takes the place of the request of `rmcp`, which reads an answer before anything can be left out of it, and loses
//! one that is too long.

use std::collections::HashMap;
use std::sync::Arc;

use super::protocol::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId};
use super::protocol::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use super::protocol::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError, StreamableHttpPostResponse,
};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, Response};

use super::events::Events;
use super::json::Excess;
use super::message;
use crate::config::Sizes;

/// Why a request has no answer.
pub(super) type Failure = StreamableHttpError<reqwest::Error>;

/// The most bytes of a refusal that are read.
const REFUSAL: usize = 64 * 1024;

/// The request that is sent.
pub(super) struct Post {
    pub(super) uri: Arc<str>,
    pub(super) message: ClientJsonRpcMessage,
    pub(super) session: Option<Arc<str>>,
    pub(super) token: Option<String>,
    pub(super) headers: HashMap<HeaderName, HeaderValue>,
}

impl Post {
    /// Sends it. An answer that cannot be read is an error of the protocol.
    pub(super) async fn send(self, client: &Client, sizes: Sizes) -> Result<StreamableHttpPostResponse, Failure> {
        let Self { uri, message, session, token, headers } = self;
        let mut request = client.post(&*uri).header(ACCEPT, [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", "));
        let reserved = [ACCEPT.as_str(), HEADER_SESSION_ID, HEADER_LAST_EVENT_ID];
        if let Some(name) =
            headers.keys().find(|name| reserved.iter().any(|own| name.as_str().eq_ignore_ascii_case(own)))
        {
            return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
        }
        request = token.into_iter().fold(request, |request, token| request.bearer_auth(token));
        request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        request = session.iter().fold(request, |request, session| request.header(HEADER_SESSION_ID, &**session));
        let response = request.json(&message).send().await?;
        let session_of_answer = header(&response, HEADER_SESSION_ID);
        let id = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let content_type = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if session.is_some() => Err(StreamableHttpError::SessionExpired),
            status if status.is_success() && content_type.starts_with(EVENT_STREAM_MIME_TYPE) => {
                let events = Events::of(response, id, sizes);
                Ok(StreamableHttpPostResponse::Sse(Box::pin(events), session_of_answer))
            }
            // Some servers answer so to messages that need no answer.
            status if status.is_success() && id.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            status if status.is_success() && content_type.starts_with(JSON_MIME_TYPE) => {
                match answer(response, id, &sizes).await? {
                    Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, session_of_answer)),
                    None => Err(StreamableHttpError::UnexpectedServerResponse("it is no message".into())),
                }
            }
            status if status.is_success() => Err(StreamableHttpError::UnexpectedContentType(Some(content_type))),
            _ => refusal(response, &message, session.is_some(), &sizes).await,
        }
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Reads an answer in one piece.
async fn answer(response: Response, id: Option<RequestId>, sizes: &Sizes) -> Result<Option<message::Message>, Failure> {
    Ok(match body(response, sizes.message).await? {
        Some(body) => match message::read(&body, sizes) {
            Some(message) => Some(message),
            None => message::error(id, "is no message of the protocol"),
        },
        None => message::error(id, &message::reason(Excess::Size, sizes)),
    })
}

/// Reads a body; `None` if it is longer than `limit`.
async fn body(mut response: Response, limit: usize) -> Result<Option<Vec<u8>>, Failure> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// Returns the message of a response that is no success.
async fn refusal(
    response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
    sizes: &Sizes,
) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status();
    let challenge = header(&response, WWW_AUTHENTICATE.as_str());
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, Some(challenge)) => {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            return Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)));
        }
        _ => {}
    }
    let retry_after = header(&response, RETRY_AFTER.as_str());
    let is_json = header(&response, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with(JSON_MIME_TYPE));
    let body = body(response, REFUSAL).await.ok().flatten().unwrap_or_default();
    let said = match message::read(&body, sizes) {
        Some(JsonRpcMessage::Error(said)) => Some(said.error),
        _ => None,
    };
    let is_about_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    // A server with a handshake does not know the request, and need not name it in its answer.
    if let JsonRpcMessage::Request(request) = message
        && let ClientRequest::DiscoverRequest(_) = request.request
        && status.is_client_error()
        && !has_session
        && !is_about_access
    {
        let error = said.unwrap_or_else(|| ErrorData::invalid_request(format!("HTTP {status}"), None));
        let error = JsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(error, None));
    }
    if let JsonRpcMessage::Request(request) = message
        && let Some(said) = said.filter(|_| is_json && !is_about_access)
        && status != StatusCode::TOO_MANY_REQUESTS
    {
        return Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::error(said, Some(request.id.clone())), None));
    }
    Err(match status {
        StatusCode::TOO_MANY_REQUESTS => HttpStatusError::new(status.as_u16(), retry_after).into(),
        _ if status.is_server_error() => HttpStatusError::new(status.as_u16(), retry_after).into(),
        _ => StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into()),
    })
}
