//! A server with agents for users that it knows: the routes of `goondan serve`, in a program with a sign-in of its own.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use goondan::host::Source;
use goondan::store::{FileStore, Syncs, state_root};
use goondan_serve::{Grant, Service, listen};
// The extensions that the bundle names. Nothing else names these crates, and the linker would leave them out.
use basics as _;
use logging as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

/// The longest time that running turns have after SIGTERM.
const GRACE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> goondan::Result<()> {
    tracing_subscriber::registry().with(goondan::log::layer().with_filter(LevelFilter::INFO)).init();
    let mut terminated = signal(SignalKind::terminate())?;

    let opening = Source::new(env::args().nth(1).unwrap_or_else(|| ".".to_owned())).read()?;
    let store = FileStore::in_workspace(&state_root(None)?, opening.bundle().workspace_name()?)?;
    // Many users at once: while the turn of one is synced, others go on.
    let store = Arc::new(store.syncs(Syncs::InPlace));
    let queue = Arc::new(store.queue()?);
    let host = opening.open(Arc::clone(&store)).await?;
    // Edits of the bundle reach open conversations, also turns that run.
    tokio::spawn(host.watch()?.serve(|outcome| match outcome {
        Ok(reload) => tracing::info!(agents = reload.agents.len(), "reloaded"),
        Err(error) => tracing::error!("not reloaded: {error}"),
    }));

    let service = Service::new(host.clone()).store(store).queue(queue);
    tracing::info!(turns = service.resume().await?, "going on with turns that were interrupted");
    let worker = service.clone();
    tokio::spawn(async move { worker.work().await });

    let app = Router::new()
        .route("/", get(|| async { "Agents are below /api." }))
        .nest("/api", service.router().layer(from_fn(signed_in)));
    let listener = TcpListener::bind(env::args().nth(2).as_deref().unwrap_or("127.0.0.1:8080")).await?;
    tracing::info!("listening on http://{}", listener.local_addr()?);
    let until_drained = async {
        terminated.recv().await;
        tracing::info!("draining");
        if !service.drain(GRACE).await {
            tracing::warn!("turns are left open: the next start goes on with them");
        }
    };
    listen(listener, app, until_drained).await;
    _ = host.drain(Duration::from_secs(5)).await?;
    Ok(())
}

/// Takes the user that the proxy in front has signed in. Each has the conversations whose keys begin with the name and
/// a colon.
async fn signed_in(mut request: Request, next: Next) -> Response {
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok());
    let Some(Ok(grant)) = user.map(Grant::of) else { return StatusCode::UNAUTHORIZED.into_response() };
    request.extensions_mut().insert(grant);
    next.run(request).await
}
