//! Errors as HTTP says them: `application/problem+json`.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use goondan_core::{Error, ErrorCode};
use serde_json::json;

use crate::tokens::Right;

/// An error, and the status of its kind.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    error: Error,
}

pub(crate) type Result<T> = std::result::Result<T, Problem>;

impl Problem {
    /// A request that cannot be understood.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::of(StatusCode::BAD_REQUEST, ErrorCode::SERVE_REQUEST, message, "see docs/serving.md for what it takes")
    }

    /// A body that is too large, or none.
    pub(crate) fn body(status: StatusCode, message: impl Into<String>) -> Self {
        Self::of(status, ErrorCode::SERVE_REQUEST, message, "send less at once, and all of it")
    }

    /// A request without a token that is known.
    pub(crate) fn token() -> Self {
        let remedy = "send `Authorization: Bearer TOKEN` with a token of the server's file";
        Self::of(StatusCode::UNAUTHORIZED, ErrorCode::SERVE_TOKEN, "the request has no token that is known", remedy)
    }

    /// A request from a page that may not send it.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        let remedy = "allow the origin of the page with `--cors`, or use the address that the server listens on";
        Self::of(StatusCode::FORBIDDEN, ErrorCode::SERVE_FORBIDDEN, message, remedy)
    }

    /// A request that the principal has no right to.
    pub(crate) fn right(right: Right) -> Self {
        let message = format!("the token has no right to `{}`", right.as_str());
        let remedy = "use another token, or give its principal the right";
        Self::of(StatusCode::FORBIDDEN, ErrorCode::SERVE_FORBIDDEN, message, remedy)
    }

    /// Something that is not there, or that the caller may not see.
    pub(crate) fn not_found(what: &str) -> Self {
        let message = format!("there is no such {what}");
        Self::of(StatusCode::NOT_FOUND, ErrorCode::SERVE_NOT_FOUND, message, "look for a mistake in the address")
    }

    /// Too many turns at once.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::of(StatusCode::TOO_MANY_REQUESTS, ErrorCode::SERVE_BUSY, message, "wait, and send it again with its key")
    }

    /// The server is ending.
    pub(crate) fn draining() -> Self {
        let remedy = "send it again with its key when the server has started again";
        Self::of(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::SERVE_DRAINING, "the server is ending", remedy)
    }

    /// Returns the error.
    pub(crate) fn error(&self) -> &Error {
        &self.error
    }

    /// Returns whether the same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Returns whether the request itself is at fault, so that it fails every time.
    pub(crate) fn is_of_request(&self) -> bool {
        use StatusCode as Is;
        matches!(self.status, Is::BAD_REQUEST | Is::CONFLICT | Is::PAYLOAD_TOO_LARGE | Is::UNPROCESSABLE_ENTITY)
    }

    /// Returns the same problem with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    fn of(status: StatusCode, code: ErrorCode, message: impl Into<String>, remedy: &'static str) -> Self {
        Self { status, error: Error::new(code, message.into()).suggest(remedy) }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self { status: status_of(error.code()), error }
    }
}

/// Returns the status of an error before a turn has begun.
fn status_of(code: &ErrorCode) -> StatusCode {
    let one_of = |codes: &[ErrorCode]| codes.contains(code);
    if one_of(&[
        ErrorCode::INPUT,
        ErrorCode::INPUT_FILE,
        ErrorCode::MESSAGE_PART,
        ErrorCode::VALUE_DEPTH,
        ErrorCode::CONFIG_NAME,
        ErrorCode::DECISION_INVALID,
        ErrorCode::SCHEMA_INVALID,
    ]) {
        StatusCode::BAD_REQUEST
    } else if one_of(&[ErrorCode::CONFIG_REF_NOT_FOUND, ErrorCode::AGENT_NOT_FOUND]) {
        StatusCode::NOT_FOUND
    } else if one_of(&[ErrorCode::EVENT_REUSED]) {
        StatusCode::UNPROCESSABLE_ENTITY
    } else if one_of(&[ErrorCode::NOT_WAITING, ErrorCode::DECISION_TAKEN, ErrorCode::TURN_REWOUND]) {
        StatusCode::CONFLICT
    } else if *code == ErrorCode::INSTANCE_CLOSED || code.as_str().starts_with("E_STORE_") {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let may_pass = self.may_pass();
        let Self { status, error } = self;
        if status.is_server_error() {
            tracing::warn!(status = status.as_u16(), "{}", error.report());
        }
        let body = json!({
            "type": error.help_url().unwrap_or_else(|| "about:blank".to_owned()),
            "title": status.canonical_reason(),
            "status": status.as_u16(),
            "detail": error.message(),
            "code": error.code(),
            "suggestion": error.suggestion(),
        });
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if may_pass {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
