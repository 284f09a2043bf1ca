//! A page for trying the agents out, in one file that needs nothing else.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};

use crate::problem::Result;
use crate::request::Request;

/// Returns the page. It may talk to the service alone, and no page may frame it.
pub(crate) async fn page(_: Request) -> Result<Response> {
    let policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                  frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, include_str!("page.html")).into_response())
}
