//! Connections: those that are slow, or say nothing, do not stay.

use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use goondan_core::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The time that the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);

/// The most bytes of the head of a request.
const HEAD_BYTES: usize = 64 << 10;

/// The time in which nothing is accepted after the system had no room for a connection.
const FULL: Duration = Duration::from_millis(100);

/// Serves `router` to the clients that connect to `listener`, until `stop` ends. Connections end then as soon as their
/// answer is complete, and this returns when all have. A head that takes longer than 10 s, or is larger than 64 KiB,
/// ends its connection.
///
/// ```
/// use goondan_serve::listen;
///
/// # async fn example(router: axum::Router, stop: impl Future<Output = ()>) -> std::io::Result<()> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7717").await?;
/// listen(listener, router, stop).await;
/// # Ok(())
/// # }
/// ```
pub async fn listen(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let (ends, ending) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                // As the tasks of `task`.
                let connection: BoxFuture<'static, ()> = Box::pin(connection(stream, router.clone(), ending.clone()));
                connections.spawn(connection);
            }
            Err(error) if is_of_one(&error) => {}
            Err(error) => {
                tracing::warn!("no connection is accepted: {error}");
                sleep(FULL).await;
            }
        }
    }
    drop(listener);
    drop(ends);
    while connections.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, router: Router, mut ending: watch::Receiver<()>) {
    // Pieces of an answer are sent at once.
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    tokio::select! {
        // Its failure is a failure of the client.
        _ = connection.as_mut() => return,
        _ = ending.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Returns whether an error belongs to one connection, which was gone before it was accepted.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
