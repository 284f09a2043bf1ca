//! Programs that mount the routes among their own: docs/embedding.md.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use futures_util::StreamExt;
use goondan::agent::TurnUpdate;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::MemoryStore;
use goondan::{Agent, Value, json};
use goondan_covers::covers;
use goondan_serve::{Grant, Service};
use reqwest::Client;
use tokio::net::TcpListener;

struct Failed(goondan::Error);

impl From<goondan::Error> for Failed {
    fn from(error: goondan::Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, self.0.report().to_string()).into_response()
    }
}

/// Streams the text of an answer. The turn runs while it is read, and is left open when the client goes away.
async fn answer(State(agent): State<Agent>, Path(user): Path<String>, input: String) -> Result<Response, Failed> {
    let turn = agent.instance(&user).await?.run_stream(input);
    let pieces = turn.filter_map(async |update| match update {
        TurnUpdate::Text { text, .. } => Some(Ok::<_, Infallible>(text)),
        _ => None,
    });
    Ok(Body::from_stream(pieces).into_response())
}

async fn signed_in(mut request: Request, next: Next) -> Response {
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok());
    let Some(Ok(grant)) = user.map(Grant::of) else { return StatusCode::UNAUTHORIZED.into_response() };
    request.extensions_mut().insert(grant);
    next.run(request).await
}

#[tokio::test]
#[covers("SERVE-01", "SERVE-03")]
async fn the_routes_are_mounted_beside_those_of_a_program_with_a_sign_in_of_its_own() {
    let store = Arc::new(MemoryStore::new());
    let model = ScriptedModel::new([ScriptItem::say("It rains.").repeat()]);
    let agent = Agent::builder("assistant").model(model).store(Arc::clone(&store)).build().unwrap();
    let service = Service::new(agent.clone()).store(store).page(true);
    let app = Router::new()
        .route("/talk/{user}", post(answer).with_state(agent))
        .nest("/api", service.router().layer(from_fn(signed_in)))
        .nest("/of/{agent}", service.router().layer(from_fn(signed_in)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let listener = listener.tap_io(|connection| connection.set_nodelay(true).unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let client = Client::new();

    let text = client.post(format!("{url}/talk/ann:main")).body("hello").send().await.unwrap().text().await.unwrap();
    assert_eq!(text, "It rains.");
    let get = async |path: &str, user: &str| {
        let response = client.get(format!("{url}{path}")).header("x-user", user).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    // The same conversation.
    let (status, messages) = get("/api/v1/agents/assistant/instances/ann:main/messages", "ann").await;
    let messages: Vec<Value> = serde_json::from_str(&messages).unwrap();
    assert_eq!((status, messages.len()), (200, 2));
    assert_eq!(get("/api/v1/agents/assistant/instances/ann:main/messages", "bob").await.0, 404);
    assert_eq!(get("/api/v1/agents", "").await.0, 401);
    // What is told of places is right below the path.
    let turns = format!("{url}/api/v1/agents/assistant/instances/ann:main/turns");
    let body = json!({ "input": "hello", "wait": "result" }).to_string();
    let response = client.post(turns).header("x-user", "ann").body(body).send().await.unwrap();
    let place = response.headers()["location"].to_str().unwrap().to_owned();
    assert!(get(&place, "ann").await.1.contains("It rains."), "{place}");
    // A variable of that path is none of a route's.
    let (status, of) = get("/of/another/v1/agents/assistant/instances/ann:main/messages", "ann").await;
    assert!(status == 200 && of.contains("It rains."), "{of}");
    let (status, page) = get("/api", "ann").await;
    assert!(status == 200 && page.contains("<title>goondan</title>"));
    server.abort();
}
