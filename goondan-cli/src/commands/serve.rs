//! `goondan serve`: the agents of a bundle over HTTP.

use std::sync::Arc;
use std::time::Duration;

use goondan::bundle::Plugins;
use goondan::host::{Host, Source};
use goondan::store::{FileStore, Store, Syncs, state_root};
use goondan::{Error, ErrorCode, Result};
use goondan_serve::{Limits, Service, Tokens};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::run::Signals;
use super::trust;
use crate::args::ServeArgs;
use crate::outcome::Outcome;
use crate::output::{self, diagnostics};

/// The time that connections may take to end once their turns have.
const CONNECTIONS: Duration = Duration::from_secs(5);

pub(crate) fn serve(args: &ServeArgs) -> Result<Outcome> {
    let tokens = args.token_file.as_deref().map(Tokens::read).transpose()?;
    if tokens.is_none() && !args.listen.ip().is_loopback() {
        let message = format!("other machines reach {}, and anybody could use the agents", args.listen);
        return Err(Error::new(ErrorCode::SERVE_TOKENS, message)
            .suggest("pass `--token-file`, or listen on 127.0.0.1 behind a proxy that knows who asks"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(run(args, tokens));
    // A blocking tool of a turn that is left open may still run. Do not wait for it.
    runtime.shutdown_background();
    outcome
}

async fn run(args: &ServeArgs, tokens: Option<Tokens>) -> Result<Outcome> {
    let source =
        Source::new(&args.bundle.path).allow_absolute(args.bundle.allow_absolute_plugins).libraries(Plugins::new());
    let opening = match source.read() {
        Ok(opening) => opening,
        Err(error) => return diagnostics::refused(error, false),
    };
    let described = opening.bundle();
    let root = state_root(args.state_root.as_deref())?;
    if !args.trust {
        trust::require(described, &args.bundle.path, &root, true)?;
    }
    let store = FileStore::in_workspace(&root, described.workspace_name()?)?.fsync(described.fsync());
    // Many conversations at once: while a turn of one is synced, others go on.
    let store = Arc::new(store.syncs(Syncs::InPlace));
    let host = match opening.open(Arc::clone(&store)).await {
        Ok(host) => host,
        Err(error) => return diagnostics::refused(error, false),
    };
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        Error::new(ErrorCode::IO, format!("cannot listen on {}", args.listen))
            .suggest("choose another address with `--listen`")
            .caused_by(error)
    })?;
    let outcome = listen(args, tokens, &host, store, listener).await;
    // What is left open by now is not waited for.
    let _ = host.drain(CONNECTIONS).await?;
    outcome
}

async fn listen(
    args: &ServeArgs,
    tokens: Option<Tokens>,
    host: &Host,
    store: Arc<dyn Store>,
    listener: TcpListener,
) -> Result<Outcome> {
    let mut signals = Signals::listen(|| ())?;
    let mut service = Service::new(host.clone()).store(store).limits(Limits::default().turns(args.max_turns));
    if let Some(tokens) = tokens {
        service = service.tokens(tokens);
    }
    service = args.cors.iter().fold(service, Service::allow_origin);
    let reloader = if args.watch { host.watch()? } else { host.reloader() };
    let reloads = tokio::spawn(reloader.serve(|outcome| match outcome {
        Ok(reload) => tracing::info!(agents = reload.agents.len(), "reloaded"),
        Err(error) => tracing::error!("not reloaded: {error}"),
    }));
    match service.resume().await? {
        0 => {}
        resumed => tracing::info!(turns = resumed, "going on with turns that were interrupted"),
    }
    output::eprint(&format!("listening on http://{}\n", listener.local_addr()?));
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(goondan_serve::listen(listener, service.router(), async { _ = stopped.await }));
    signals.next().await;
    let running = service.running();
    if running > 0 {
        output::eprint(&format!("leaving when {running} turns have ended, or in {} s\n", args.grace().as_secs()));
    }
    if !service.drain(args.grace()).await {
        output::eprint("turns are left open: the next start goes on with them\n");
    }
    reloads.abort();
    drop(stop);
    if timeout(CONNECTIONS, server).await.is_err() {
        tracing::warn!("connections were cut");
    }
    Ok(Outcome::Done)
}
