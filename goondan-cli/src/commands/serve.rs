//! `goondan serve`: the agents of a bundle over HTTP.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use goondan::bundle::{Plugins, ServerResource};
use goondan::host::{Host, Source};
use goondan::store::{FileStore, Syncs, state_root};
use goondan::{BoxFuture, Error, ErrorCode, Result};
use goondan_serve::{Grant, Limits, Right, Service, Tokens};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::run::Signals;
use super::trust;
use crate::args::ServeArgs;
use crate::outcome::Outcome;
use crate::output::{self, diagnostics};

/// The time that connections may take to end once their turns have.
const CONNECTIONS: Duration = Duration::from_secs(5);

pub(crate) fn serve(args: &ServeArgs) -> Result<Outcome> {
    let tokens = args.token_file.as_deref().map(Tokens::read).transpose()?.unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(run(args, tokens));
    // A blocking tool of a turn that is left open may still run. Do not wait for it.
    runtime.shutdown_background();
    outcome
}

async fn run(args: &ServeArgs, mut tokens: Tokens) -> Result<Outcome> {
    let source =
        Source::new(&args.bundle.path).allow_absolute(args.bundle.allow_absolute_plugins).libraries(Plugins::new());
    let opening = match source.read() {
        Ok(opening) => opening,
        Err(error) => return diagnostics::refused(error, false),
    };
    let described = opening.bundle();
    let server = described.server();
    tokens.extend(grants(server)?);
    let address = args.listen(server.and_then(|server| server.listen));
    if tokens.is_empty() && !address.ip().is_loopback() {
        let message = format!("other machines reach {address}, and anybody could use the agents");
        return Err(Error::new(ErrorCode::SERVE_TOKENS, message).suggest(
            "pass `--token-file`, add `principals` to the Server of the bundle, or listen on 127.0.0.1 behind a proxy \
             that knows who asks",
        ));
    }
    let configured = configured(args, server);
    let root = state_root(args.state_root.as_deref())?;
    if !args.trust {
        trust::require(described, &args.bundle.path, &root, true)?;
    }
    let store = FileStore::in_workspace(&root, described.workspace_name()?)?.fsync(described.fsync());
    // Many conversations at once: while a turn of one is synced, others go on.
    let store = Arc::new(store.syncs(Syncs::InPlace));
    let queue = Arc::new(store.queue()?);
    let host = match opening.open(Arc::clone(&store)).await {
        Ok(host) => host,
        Err(error) => return diagnostics::refused(error, false),
    };
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Error::new(ErrorCode::IO, format!("cannot listen on {address}"))
            .suggest("choose another address with `--listen`")
            .caused_by(error)
    })?;
    let mut service = configured(Service::new(host.clone())).store(store).queue(queue);
    if !tokens.is_empty() {
        service = service.tokens(tokens);
    }
    let outcome = listen(args, &host, service, listener).await;
    // Turns that are left open by now are not waited for.
    let _ = host.drain(CONNECTIONS).await?;
    outcome
}

/// Returns the principals of a bundle.
fn grants(server: Option<&ServerResource>) -> Result<Vec<Grant>> {
    let principals = server.into_iter().flat_map(|server| &server.principals);
    let grants = principals.map(|principal| {
        let mut grant = Grant::new(&principal.name, &principal.token_sha256)?;
        if let Some(agents) = &principal.agents {
            grant = grant.agents(agents.clone());
        }
        if let Some(keys) = &principal.instances {
            grant = grant.keys(keys);
        }
        if let Some(may) = &principal.may {
            grant = grant.rights(Right::ALL.into_iter().filter(|right| may.iter().any(|word| word == right.as_str())));
        }
        Ok(grant)
    });
    grants.collect()
}

/// Returns a function that configures a service by the command line and the bundle.
fn configured(args: &ServeArgs, server: Option<&ServerResource>) -> impl FnOnce(Service) -> Service + use<> {
    let number = |number: Option<NonZeroU32>| number.and_then(|number| usize::try_from(number.get()).ok());
    let mut limits = Limits::default();
    limits.ended_bytes = args.log_bytes;
    limits.turns = args.max_turns.or(number(server.and_then(|server| server.turns))).unwrap_or(limits.turns);
    limits.per_principal = number(server.and_then(|server| server.turns_per_principal)).unwrap_or(limits.per_principal);
    limits.body_bytes = number(server.and_then(|server| server.body_bytes)).unwrap_or(limits.body_bytes);
    let agents = server.and_then(|server| server.agents.clone());
    let cancels = server.is_some_and(|server| server.cancels_on_disconnect);
    let (cors, ui) = (args.cors.clone(), args.ui);
    move |service| {
        let service = service.limits(limits).cancel_on_disconnect(cancels).page(ui);
        let service = cors.into_iter().fold(service, Service::allow_origin);
        agents.into_iter().fold(service, Service::only)
    }
}

/// Runs a future in a task. All have one type, so that the code of a task is compiled once.
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let task: BoxFuture<'static, ()> = Box::pin(task);
    tokio::spawn(task)
}

async fn listen(args: &ServeArgs, host: &Host, service: Service, listener: TcpListener) -> Result<Outcome> {
    let mut signals = Signals::listen(|| ())?;
    let reloader = if args.watch { host.watch()? } else { host.reloader() };
    let reloads = spawn(reloader.serve(|outcome| match outcome {
        Ok(reload) => tracing::info!(agents = reload.agents.len(), "reloaded"),
        Err(error) => tracing::error!("not reloaded: {error}"),
    }));
    match service.resume().await? {
        0 => {}
        resumed => tracing::info!(turns = resumed, "going on with turns that were interrupted"),
    }
    let working = spawn({
        let service = service.clone();
        async move {
            if let Err(error) = service.work().await {
                tracing::error!("turns of the queue wait for the next start: {error}");
            }
        }
    });
    output::eprint(&format!("listening on http://{}\n", listener.local_addr()?));
    let (stop, stopped) = oneshot::channel::<()>();
    let server = spawn(goondan_serve::listen(listener, service.router(), async { _ = stopped.await }));
    signals.next().await;
    let running = service.running();
    if running > 0 {
        output::eprint(&format!("leaving when {running} turns have ended, or in {} s\n", args.grace().as_secs()));
    }
    if !service.drain(args.grace()).await {
        output::eprint("turns are left open: the next start goes on with them\n");
    }
    reloads.abort();
    working.abort();
    drop(stop);
    if timeout(CONNECTIONS, server).await.is_err() {
        tracing::warn!("connections were cut");
    }
    Ok(Outcome::Done)
}
