//! The routes.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request as HttpRequest, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN, VARY,
};
use axum::http::{HeaderValue, Method as HttpMethod, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use goondan_core::BoxFuture;
use serde_json::Value;

use crate::ag_ui::input::RunInput;
use crate::children::WithChildren;
use crate::native::instances::{self, AgentList, InstanceList};
use crate::native::json_of;
use crate::native::turns::{self, Cancelled, TurnBody, Unended};
use crate::operation::{Operation, document};
use crate::problem::{Problem, Result};
use crate::request::{Request, Wanted};
use crate::service::Service;
use crate::ui::chat::Chat;
use crate::{ag_ui, page, schemas, ui};

/// A route, and its description.
struct Route {
    method: Method,
    path: String,
    handler: Handler,
    operation: Operation,
}

/// A method, and its name in the description.
type Method = (MethodFilter, &'static str);

const GET: Method = (MethodFilter::GET, "get");
const POST: Method = (MethodFilter::POST, "post");
const DELETE: Method = (MethodFilter::DELETE, "delete");

/// The code of a route. All routes have it in this form, which is compiled once.
type Handler = Arc<dyn Fn(Request) -> BoxFuture<'static, Result<Response>> + Send + Sync>;

fn handler<F: Future<Output = Result<Response>> + Send + 'static>(run: fn(Request) -> F) -> Handler {
    Arc::new(move |request| Box::pin(run(request)))
}

/// Returns a handler for axum. It answers requests that have what is wanted.
fn endpoint((method, _): Method, handler: Handler, wanted: Wanted) -> MethodRouter<Service> {
    on(method, async move |State(service): State<Service>, request: HttpRequest| {
        let answer = match Request::read(service, request, wanted).await {
            Ok(request) => handler(request).await,
            Err(problem) => Err(problem),
        };
        answer.unwrap_or_else(IntoResponse::into_response)
    })
}

/// The statuses with which a turn is refused before it begins.
const BEGINS: &[u16] = &[400, 404, 408, 413, 422, 429, 503];

/// The same, and of decisions that come too late.
const DECIDES: &[u16] = &[400, 404, 408, 409, 413, 422, 429, 503];

/// The path of a conversation.
const INSTANCE: &str = "/v1/agents/{agent}/instances/{key}";

fn routes() -> Vec<Route> {
    let mut routes = Vec::new();
    let mut add = |method: Method, path: &str, handler: Handler, operation: Operation| {
        routes.push(Route { method, path: path.to_owned(), handler, operation });
    };
    add_general(&mut add);
    add_instances(&mut add);
    add_turns(&mut add);
    add_front_ends(&mut add);
    routes
}

/// Adds a route.
type Add<'a> = &'a mut dyn FnMut(Method, &str, Handler, Operation);

fn add_general(add: Add<'_>) {
    add(GET, "/healthz", handler(alive), Operation::new("The process is alive.").says().without_token());
    let operation = Operation::new("It begins turns.").says().refuses(&[503]).without_token();
    add(GET, "/readyz", handler(ready), operation);
    let operation = Operation::new("This description.").answers::<Value>(200).without_token();
    add(GET, "/openapi.json", handler(openapi), operation);
    add(GET, "/v1/agents", handler(instances::agents), Operation::new("The agents.").answers::<AgentList>(200));
}

fn add_instances(add: Add<'_>) {
    let operation = Operation::new("The conversations of an agent, by key.")
        .query("after", "The `next` of the page before.")
        .query("limit", "The most of them, from 1 to 1000; 100 by default.")
        .query("status", "Those that are `idle`, `interrupted`, `suspended`, `open` or `unreadable`.")
        .answers::<InstanceList>(200)
        .refuses(&[400, 404]);
    add(GET, "/v1/agents/{agent}/instances", handler(instances::list), operation);

    let at = |rest: &str| format!("{INSTANCE}{rest}");
    let operation = Operation::new("A conversation.").answers::<schemas::Instance>(200).refuses(&[404]);
    add(GET, INSTANCE, handler(instances::show), operation);
    let operation = Operation::new("Deletes a conversation for good.").says_nothing(204).refuses(&[404, 409]);
    add(DELETE, INSTANCE, handler(instances::delete), operation);
    let operation = Operation::new("Its messages.").answers::<Vec<schemas::Message>>(200);
    add(GET, &at("/messages"), handler(instances::messages), operation.refuses(&[404]));
    let operation = Operation::new("The turns of a conversation that run, and those that begin later.")
        .header("Last-Event-ID", "The place after which the turn that runs goes on.")
        .streams()
        .refuses(&[404, 503]);
    add(GET, &at("/events"), handler(instances::events), operation);
    let operation = Operation::new("The calls that wait for a person.").answers::<Vec<schemas::Wait>>(200);
    add(GET, &at("/decisions"), handler(instances::waits), operation.refuses(&[404]));
    let operation = Operation::new("Decides, and streams the turn, which goes on.")
        .query(WithChildren::NAME, WithChildren::DESCRIPTION)
        .takes::<Vec<schemas::Decision>>()
        .streams()
        .refuses(&[400, 404, 408, 409, 413, 429, 503]);
    add(POST, &at("/decisions"), handler(instances::decide), operation);
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
    add(POST, &at("/turns"), handler(turns::run), operation);
    let operation = Operation::new("The end of a turn.")
        .answers::<schemas::TurnEnd>(200)
        .answers::<Unended>(202)
        .refuses(&[404, 503]);
    add(GET, &at("/turns/{event}"), handler(turns::outcome), operation);
    let operation = Operation::new("The stream of a turn.")
        .header("Last-Event-ID", "The place after which it goes on.")
        .streams()
        .refuses(&[400, 404]);
    add(GET, &at("/turns/{event}/events"), handler(turns::watch), operation);
    let operation = Operation::new("Cancels a turn.").answers::<Cancelled>(200).refuses(&[404]);
    add(POST, &at("/turns/{event}/cancel"), handler(turns::cancel), operation);
}

fn add_front_ends(add: Add<'_>) {
    let operation = Operation::new("A run of AG-UI.")
        .query(WithChildren::NAME, WithChildren::DESCRIPTION)
        .takes::<RunInput>()
        .streams()
        .refuses(DECIDES);
    add(POST, "/v1/agents/{agent}/ag-ui", handler(ag_ui::run), operation);
    let operation = Operation::new("A message of AI SDK UI.")
        .query(WithChildren::NAME, WithChildren::DESCRIPTION)
        .takes::<Chat>()
        .streams()
        .refuses(DECIDES);
    add(POST, "/v1/agents/{agent}/ui", handler(ui::post), operation);
    let operation = Operation::new("The turn that runs in a chat.").streams().says_nothing(204).refuses(&[404]);
    add(GET, "/v1/agents/{agent}/ui/{id}/stream", handler(ui::resume), operation);
    let operation = Operation::new("Cancels the turn that runs in a chat.").answers::<Cancelled>(200);
    add(POST, "/v1/agents/{agent}/ui/{id}/cancel", handler(ui::cancel), operation.refuses(&[404]));
}

impl Service {
    /// Returns the routes, for a program of its own: `router.nest("/agents", service.router())` has them below a path.
    pub fn router(&self) -> Router {
        let router = match self.has_page() {
            true => {
                let wanted = Wanted { token: false, body: false };
                Router::new().route("/", endpoint(GET, handler(page::page), wanted))
            }
            false => Router::new(),
        };
        let router = routes().into_iter().fold(router, |router, route| {
            router.route(&route.path, endpoint(route.method, route.handler, route.operation.wanted()))
        });
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
        let described = routes.iter().map(|route| (route.method.1, route.path.as_str(), &route.operation));
        document(described, self.tokens_of().is_some())
    }
}

async fn alive(_: Request) -> Result<Response> {
    Ok("ok".into_response())
}

async fn openapi(request: Request) -> Result<Response> {
    Ok(json_of(&request.service.openapi()))
}

async fn ready(request: Request) -> Result<Response> {
    match request.service.is_draining() {
        true => Err(Problem::draining()),
        false => Ok("ok".into_response()),
    }
}

/// Lets pages of the origins that are allowed read the answers.
async fn cors(State(service): State<Service>, request: HttpRequest, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    let allowed = origin.filter(|origin| origin.to_str().is_ok_and(|origin| service.allows_origin(origin)));
    let mut response = match (request.method() == HttpMethod::OPTIONS, &allowed) {
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
