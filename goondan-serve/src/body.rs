//! The JSON body of a request.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::problem::{Problem, Result};
use crate::service::Service;

/// The time that a body may take to arrive.
const ARRIVES: Duration = Duration::from_secs(30);

/// A body of JSON, whatever the request says of its type.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Service> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, service: &Service) -> Result<Self> {
        let late = || Problem::body(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
        let body = timeout(ARRIVES, Bytes::from_request(request, service)).await.map_err(|_| late())?;
        let body = body.map_err(|rejection| Problem::body(rejection.status(), rejection.body_text()))?;
        let body = serde_json::from_slice(&body);
        body.map(Self).map_err(|error| Problem::request(format!("the body cannot be read: {error}")))
    }
}
