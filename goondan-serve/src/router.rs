//! The routes.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN, VARY,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::problem::Problem;
use crate::service::Service;
use crate::{ag_ui, native, ui};

impl Service {
    /// Returns the routes, for a program of its own: `router.nest("/agents", service.router())` has them below a path.
    pub fn router(&self) -> Router {
        let instance = "/v1/agents/{agent}/instances/{key}";
        let at = |rest: &str| format!("{instance}{rest}");
        Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route("/readyz", get(ready))
            .route("/v1/agents", get(native::agents))
            .route("/v1/agents/{agent}/instances", get(native::instances))
            .route(&at("/messages"), get(native::messages))
            .route(&at("/decisions"), get(native::waits).post(native::decide))
            .route(&at("/turns"), post(native::run))
            .route(&at("/turns/{event}"), get(native::outcome))
            .route(&at("/turns/{event}/events"), get(native::watch))
            .route(&at("/turns/{event}/cancel"), post(native::cancel))
            .route("/v1/agents/{agent}/ag-ui", post(ag_ui::run))
            .route("/v1/agents/{agent}/ui", post(ui::post))
            .route("/v1/agents/{agent}/ui/{id}/stream", get(ui::resume))
            .route("/v1/agents/{agent}/ui/{id}/cancel", post(ui::cancel))
            .fallback(|| async { Problem::not_found("page") })
            .method_not_allowed_fallback(|| async {
                Problem::body(StatusCode::METHOD_NOT_ALLOWED, "the page does not take this method")
            })
            .layer(DefaultBodyLimit::max(self.limits_of().body_bytes))
            .layer(from_fn_with_state(self.clone(), cors))
            .with_state(self.clone())
    }
}

async fn ready(State(service): State<Service>) -> Response {
    match service.is_draining() {
        true => Problem::draining().into_response(),
        false => "ok".into_response(),
    }
}

/// Lets pages of the origins that are allowed read the answers.
async fn cors(State(service): State<Service>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let allowed = origin.filter(|origin| origin.to_str().is_ok_and(|origin| service.allows_origin(origin)));
    let mut response = match (request.method() == Method::OPTIONS, &allowed) {
        (true, Some(_)) => StatusCode::NO_CONTENT.into_response(),
        _ => next.run(request).await,
    };
    if let Some(origin) = allowed {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
        let names = "authorization, content-type, idempotency-key, last-event-id";
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(names));
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("location"));
        headers.insert(VARY, HeaderValue::from_static("origin"));
    }
    response
}
