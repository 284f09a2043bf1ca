//! A server with an agent for each user: a message that is posted to `/USER` is answered as server-sent events.

use std::convert::Infallible;
use std::env;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::post;
use futures_util::stream::{Stream, unfold};
use goondan::agent::{TurnStream, TurnUpdate};
use goondan::host::{Drained, Host, HostTurns, HostedInstance, Source};
use goondan::store::{FileStore, Syncs, state_root};
use goondan::{Error, json};
// The extensions that the bundle names. Nothing else names these crates, and the linker would leave them out.
use basics as _;
use logging as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

/// The agent of the bundle that users talk to.
const AGENT: &str = "assistant";
/// How long turns that run may continue after SIGTERM.
const GRACE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> goondan::Result<()> {
    tracing_subscriber::registry().with(goondan::log::layer().with_filter(LevelFilter::INFO)).init();
    let mut terminated = signal(SignalKind::terminate())?;

    let opening = Source::new(env::args().nth(1).unwrap_or_else(|| ".".to_owned())).read()?;
    let store = FileStore::in_workspace(&state_root(None)?, opening.bundle().workspace_name()?)?;
    // Many users at once: while the turn of one is synced, others go on.
    let host = opening.open(store.syncs(Syncs::InPlace)).await?;
    tokio::spawn(log_background_turns(host.background_turns()));
    // Edits of the bundle reach open conversations, also turns that run.
    tokio::spawn(host.watch()?.serve(|outcome| match outcome {
        Ok(reload) => tracing::info!(agents = reload.agents.len(), "reloaded"),
        Err(error) => tracing::error!("not reloaded: {error}"),
    }));

    let listener = TcpListener::bind(env::args().nth(2).as_deref().unwrap_or("127.0.0.1:8080")).await?;
    tracing::info!("listening on http://{}", listener.local_addr()?);
    let (stop, stopped) = oneshot::channel::<()>();
    let routes = Router::new().route("/{user}", post(answer)).with_state(host.clone());
    let server = axum::serve(listener, routes).with_graceful_shutdown(async { _ = stopped.await });
    let server = tokio::spawn(server.into_future());

    terminated.recv().await;
    tracing::info!("draining");
    // No more connections; answers that are under way are streamed to their end.
    drop(stop);
    match host.drain(GRACE).await? {
        Drained::Closed => server.await??,
        _ => tracing::warn!("turns were cancelled"),
    }
    Ok(())
}

/// Runs one turn of the user's conversation. Turns of one user run one after the other.
async fn answer(
    State(host): State<Host>,
    Path(user): Path<String>,
    message: String,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, (StatusCode, String)> {
    let unavailable = |error: Error| (StatusCode::SERVICE_UNAVAILABLE, error.report().to_string());
    let instance = host.instance(AGENT, &user).await.map_err(unavailable)?;
    let turn = instance.run_stream(message);
    // The turn runs while the stream is read. When the client leaves, the stream is dropped, and the turn does not run
    // any more: the user's next message closes it.
    Ok(Sse::new(unfold(Some((instance, turn)), next_event)).keep_alive(KeepAlive::default()))
}

/// Returns the next event of a turn, and what is left of it. The data of each event is JSON.
async fn next_event(
    turn: Option<(HostedInstance, TurnStream)>,
) -> Option<(Result<Event, Infallible>, Option<(HostedInstance, TurnStream)>)> {
    let (instance, mut turn) = turn?;
    while let Some(update) = turn.next().await {
        let (kind, data) = match update {
            TurnUpdate::Text { text, .. } => ("text", json!(text)),
            TurnUpdate::ToolCall { name, .. } => ("call", json!(name)),
            // The pieces of text since the last call are to be forgotten.
            TurnUpdate::Restart { reason, .. } => ("restart", json!(reason)),
            _ => continue,
        };
        return Some((Ok(event(kind, &data)), Some((instance, turn))));
    }
    let end = match turn.finish().await {
        Ok(result) => event("end", &json!(result.text())),
        Err(error) => event("error", &json!({ "code": error.code(), "message": error.message() })),
    };
    Some((Ok(end), None))
}

fn event(kind: &str, data: &goondan::Value) -> Event {
    Event::default().event(kind).data(data.to_string())
}

/// A service would send them to the user; this one has no way to.
async fn log_background_turns(mut turns: HostTurns) {
    loop {
        tracing::info!("in the background: {:?}", turns.next().await);
    }
}
