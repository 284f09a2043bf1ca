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
use axum::routing::{MethodRouter, delete, get, post};
use serde_json::Value;

use crate::ag_ui::input::RunInput;
use crate::children::WithChildren;
use crate::native::instances::{self, AgentList, InstanceList};
use crate::native::json_of;
use crate::native::turns::{self, Cancelled, TurnBody, Unended};
use crate::operation::{Operation, document};
use crate::problem::Problem;
use crate::service::Service;
use crate::ui::chat::Chat;
use crate::{ag_ui, page, schemas, ui};

/// A route, and its description.
struct Route {
    method: &'static str,
    path: String,
    handler: MethodRouter<Service>,
    operation: Operation,
}

/// The statuses with which a turn is refused before it begins.
const BEGINS: &[u16] = &[400, 404, 408, 413, 422, 429, 503];

/// The same, and of decisions that come too late.
const DECIDES: &[u16] = &[400, 404, 408, 409, 413, 422, 429, 503];

/// The path of a conversation.
const INSTANCE: &str = "/v1/agents/{agent}/instances/{key}";

fn routes() -> Vec<Route> {
    let mut routes = Vec::new();
    let mut add = |path: &str, method: &'static str, handler: MethodRouter<Service>, operation: Operation| {
        routes.push(Route { method, path: path.to_owned(), handler, operation });
    };
    add_general(&mut add);
    add_instances(&mut add);
    add_turns(&mut add);
    add_front_ends(&mut add);
    routes
}

/// Adds a route.
type Add<'a> = &'a mut dyn FnMut(&str, &'static str, MethodRouter<Service>, Operation);

fn add_general(add: Add<'_>) {
    add("/healthz", "get", get(|| async { "ok" }), Operation::new("The process is alive.").says().without_token());
    let operation = Operation::new("It begins turns.").says().refuses(&[503]).without_token();
    add("/readyz", "get", get(ready), operation);
    add(
        "/openapi.json",
        "get",
        get(openapi),
        Operation::new("This description.").answers::<Value>(200).without_token(),
    );
    add("/v1/agents", "get", get(instances::agents), Operation::new("The agents.").answers::<AgentList>(200));
}

fn add_instances(add: Add<'_>) {
    let operation = Operation::new("The conversations of an agent, by key.")
        .query("after", "The `next` of the page before.")
        .query("limit", "The most of them, from 1 to 1000; 100 by default.")
        .query("status", "Those that are `idle`, `interrupted`, `suspended`, `open` or `unreadable`.")
        .answers::<InstanceList>(200)
        .refuses(&[400, 404]);
    add("/v1/agents/{agent}/instances", "get", get(instances::list), operation);

    let at = |rest: &str| format!("{INSTANCE}{rest}");
    let operation = Operation::new("A conversation.").answers::<schemas::Instance>(200).refuses(&[404]);
    add(INSTANCE, "get", get(instances::show), operation);
    let operation = Operation::new("Deletes a conversation for good.").says_nothing(204).refuses(&[404, 409]);
    add(INSTANCE, "delete", delete(instances::delete), operation);
    let operation = Operation::new("Its messages.").answers::<Vec<schemas::Message>>(200);
    add(&at("/messages"), "get", get(instances::messages), operation.refuses(&[404]));
    let operation = Operation::new("The turns of a conversation that run, and those that begin later.")
        .header("Last-Event-ID", "The place after which the turn that runs goes on.")
        .streams()
        .refuses(&[404, 503]);
    add(&at("/events"), "get", get(instances::events), operation);
    let operation = Operation::new("The calls that wait for a person.").answers::<Vec<schemas::Wait>>(200);
    add(&at("/decisions"), "get", get(instances::waits), operation.refuses(&[404]));
    let operation = Operation::new("Decides, and streams the turn, which goes on.")
        .query(WithChildren::NAME, WithChildren::DESCRIPTION)
        .takes::<Vec<schemas::Decision>>()
        .streams()
        .refuses(&[400, 404, 408, 409, 413, 429, 503]);
    add(&at("/decisions"), "post", post(instances::decide), operation);
}

fn add_turns(add: Add<'_>) {
    let at = |rest: &str| format!("{INSTANCE}{rest}");
    let operation = Operation::new("Runs a turn.")
        .header("Idempotency-Key", "With the same key, it is the same turn.")
        .query(WithChildren::NAME, WithChildren::DESCRIPTION)
        .takes::<TurnBody>()
        .streams()
        .answers::<schemas::TurnEnd>(200)
        .answers::<Unended>(202)
        .refuses(BEGINS);
    add(&at("/turns"), "post", post(turns::run), operation);
    let operation = Operation::new("The end of a turn.")
        .answers::<schemas::TurnEnd>(200)
        .answers::<Unended>(202)
        .refuses(&[404, 503]);
    add(&at("/turns/{event}"), "get", get(turns::outcome), operation);
    let operation = Operation::new("The stream of a turn.")
        .header("Last-Event-ID", "The place after which it goes on.")
        .streams()
        .refuses(&[400, 404]);
    add(&at("/turns/{event}/events"), "get", get(turns::watch), operation);
    let operation = Operation::new("Cancels a turn.").answers::<Cancelled>(200).refuses(&[404]);
    add(&at("/turns/{event}/cancel"), "post", post(turns::cancel), operation);
}

fn add_front_ends(add: Add<'_>) {
    let operation = Operation::new("A run of AG-UI.")
        .query(WithChildren::NAME, WithChildren::DESCRIPTION)
        .takes::<RunInput>()
        .streams()
        .refuses(DECIDES);
    add("/v1/agents/{agent}/ag-ui", "post", post(ag_ui::run), operation);
    let operation = Operation::new("A message of AI SDK UI.")
        .query(WithChildren::NAME, WithChildren::DESCRIPTION)
        .takes::<Chat>()
        .streams()
        .refuses(DECIDES);
    add("/v1/agents/{agent}/ui", "post", post(ui::post), operation);
    let operation = Operation::new("The turn that runs in a chat.").streams().says_nothing(204).refuses(&[404]);
    add("/v1/agents/{agent}/ui/{id}/stream", "get", get(ui::resume), operation);
    let operation = Operation::new("Cancels the turn that runs in a chat.").answers::<Cancelled>(200);
    add("/v1/agents/{agent}/ui/{id}/cancel", "post", post(ui::cancel), operation.refuses(&[404]));
}

impl Service {
    /// Returns the routes, for a program of its own: `router.nest("/agents", service.router())` has them below a path.
    pub fn router(&self) -> Router {
        let router = match self.has_page() {
            true => Router::new().route("/", get(page::page)),
            false => Router::new(),
        };
        let router = routes().into_iter().fold(router, |router, route| router.route(&route.path, route.handler));
        router
            .fallback(|| async { Problem::not_found("page") })
            .method_not_allowed_fallback(|| async {
                Problem::body(StatusCode::METHOD_NOT_ALLOWED, "the page does not take this method")
            })
            .layer(DefaultBodyLimit::max(self.limits_of().body_bytes))
            .layer(from_fn_with_state(self.clone(), cors))
            .with_state(self.clone())
    }

    /// Returns the description of the routes (OpenAPI 3.1), which is also at `/openapi.json`.
    pub fn openapi(&self) -> Value {
        let routes = routes();
        let described = routes.iter().map(|route| (route.method, route.path.as_str(), &route.operation));
        document(described, self.tokens_of().is_some())
    }
}

async fn openapi(State(service): State<Service>) -> Response {
    json_of(&service.openapi())
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
