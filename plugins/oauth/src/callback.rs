//! The listener for the browser of a person: it sends the browser to the page of the authorization server, and is where
//! that sends it back.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use goondan::Secret;
use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The longest time in which a browser may send its request.
const REQUEST: Duration = Duration::from_secs(10);
/// The longest request that is read.
const LONGEST: usize = 16_384;
const PATH: &str = "/callback";
/// The path that a person opens.
const START: &str = "/sign-in";
/// The page for other browsers.
const UNKNOWN: &str = "This page belongs to no sign-in that is under way.";

/// Listens for one browser, on this machine only.
pub(crate) struct Callback {
    listener: TcpListener,
    port: u16,
    url: String,
}

/// The browser of the person, which waits for a page.
pub(crate) struct Visit {
    stream: TcpStream,
    /// The code for the access, or the error of the authorization server.
    pub(crate) outcome: Result<Secret, String>,
    /// The authorization server, if it tells its name. RFC 9207.
    pub(crate) issuer: Option<String>,
}

impl Callback {
    /// Listens on `port`, or on any port if it is 0.
    pub(crate) async fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, port: address.port(), url: format!("http://{address}{PATH}") })
    }

    /// Returns the URL to which the browser is sent.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL that a person opens, which says nothing of the sign-in. The URL of the page has the `state`, by
    /// which the browser is known that comes back, so it is told to that browser alone.
    pub(crate) fn start(&self) -> String {
        format!("http://127.0.0.1:{}{START}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Sends browsers to `page`, and waits for the one that was sent here with `state`, but not longer than `limit`.
    /// Closes the listener then.
    pub(crate) async fn visit(self, page: &Url, state: &str, limit: Duration) -> Option<Visit> {
        timeout(limit, self.visited(page, state)).await.ok()?.ok()
    }

    /// Waits for the browser that was sent here with `state`. Others are refused, and end nothing.
    async fn visited(self, page: &Url, state: &str) -> io::Result<Visit> {
        let away = format!("302 Found\r\nlocation: {page}\r\ncache-control: no-store\r\nreferrer-policy: no-referrer");
        // A browser may open a connection before it needs it.
        let mut requests = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (stream, _) = accepted?;
                    requests.spawn(timeout(REQUEST, read(stream)));
                }
                Some(request) = requests.join_next() => {
                    let Ok(Ok(Some((stream, url)))) = request else { continue };
                    match outcome(&url, state) {
                        Some(outcome) => return Ok(Visit { stream, outcome, issuer: value(&url, "iss") }),
                        None => {
                            let (status, text) = match url.path() {
                                START => (away.clone(), ""),
                                _ => ("400 Bad Request".to_owned(), UNKNOWN),
                            };
                            requests.spawn(async move {
                                let _ = timeout(REQUEST, respond(stream, &status, text)).await;
                                Ok(None)
                            });
                        }
                    }
                }
            }
        }
    }
}

impl Visit {
    /// Shows a text.
    pub(crate) async fn show(self, text: &str) {
        // The browser may be gone.
        let _ = timeout(REQUEST, respond(self.stream, "200 OK", text)).await;
    }
}

/// Returns the parameters of the browser, if it was sent here for this sign-in.
fn outcome(url: &Url, state: &str) -> Option<Result<Secret, String>> {
    if url.path() != PATH || value(url, "state").as_deref() != Some(state) {
        return None;
    }
    Some(match value(url, "code") {
        Some(code) => Ok(Secret::new(code)),
        None => Err(value(url, "error").unwrap_or_else(|| "no code".to_owned())),
    })
}

fn value(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Reads the head of a request, and returns its URL.
async fn read(mut stream: TcpStream) -> Option<(TcpStream, Url)> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > LONGEST || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let target = head.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    Some((stream, url))
}

/// Answers with a status, which headers may follow, and a text.
async fn respond(mut stream: TcpStream, status: &str, text: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_listener_is_closed_after_five_minutes() {
        let callback = Callback::listen(0).await.unwrap();
        let address = callback.listener.local_addr().unwrap();
        let begin = tokio::time::Instant::now();
        assert!(
            callback.visit(&Url::parse("http://127.0.0.1").unwrap(), "state", crate::sign_in::LIMIT).await.is_none()
        );
        assert_eq!(begin.elapsed().as_secs(), 300);
        assert!(std::net::TcpStream::connect(address).is_err(), "the listener is closed");
    }
}
