//! Sends a request, and follows its redirects.

use std::sync::Arc;
use std::time::Instant;

use goondan::tool::ToolContext;
use goondan::{Error, Result};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode, Url};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::time::timeout;

use crate::failure::{FAILED, TIMEOUT, failed};
use crate::guard::{Allowed, Guard};
use crate::request::Request;
use crate::response::Fetched;

/// The most redirects that are followed.
const REDIRECTS: usize = 10;

/// Sends requests.
#[derive(Debug)]
pub(crate) struct Fetcher {
    client: Client,
    allowed: Allowed,
}

impl Fetcher {
    /// # Errors
    /// When the root certificates of the system cannot be read.
    pub(crate) fn new(allowed: Allowed) -> Result<Self> {
        // It names its cryptography, because a library must not choose it for the whole process.
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions()?;
        let tls = tls.with_platform_verifier()?.with_no_client_auth();
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Guard(allowed.clone()))
            // Each redirect is checked here.
            .redirect(Policy::none())
            // A proxy would look up the name itself, and connect to any address.
            .no_proxy()
            .user_agent(concat!("goondan-http-fetch/", env!("CARGO_PKG_VERSION")));
        Ok(Self { client: client.build()?, allowed })
    }

    /// Sends a request, follows its redirects, and reads the answer.
    ///
    /// # Errors
    /// `E_HTTP_ADDRESS` when an address is not public, also after a redirect; `E_HTTP_REQUEST` when a redirect leads to
    /// another scheme; `E_HTTP_TIMEOUT`; `E_HTTP_FAILED`.
    pub(crate) async fn fetch(&self, ctx: &ToolContext<'_>, request: Request) -> Result<Fetched> {
        let (limit, started) = (request.timeout, Instant::now());
        let fetched = timeout(limit, async {
            let (method, max_bytes) = (request.method.clone(), request.max_bytes);
            let response = self.follow(request).await?;
            Fetched::read(ctx, method, response, max_bytes, started).await
        });
        fetched.await.unwrap_or_else(|_| {
            let message = format!("there was no whole answer within {} ms", limit.as_millis());
            Err(Error::new(TIMEOUT, message).suggest("give it a longer `timeoutMs`, or use another URL"))
        })
    }

    async fn follow(&self, mut request: Request) -> Result<Response> {
        for _ in 0..=REDIRECTS {
            self.allowed.check(&request.url)?;
            let sent =
                self.client.request(request.method.clone(), request.url.clone()).headers(request.headers.clone());
            let sent = request.body.iter().fold(sent, |sent, body| sent.body(body.clone()));
            let response = sent.send().await.map_err(|error| failed(&error))?;
            match target(&response) {
                Some(url) => redirect(&mut request, response.status(), url),
                None => return Ok(response),
            }
        }
        let message = format!("there were more than {REDIRECTS} redirects, the last one to {}", request.url);
        Err(Error::new(FAILED, message).suggest("use another URL"))
    }
}

/// Returns where a response redirects to, if it does.
fn target(response: &Response) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    response.url().join(response.headers().get(LOCATION)?.to_str().ok()?).ok()
}

/// Makes of a request the one that follows it. Headers of the caller, among which may be keys, are not for another
/// site.
fn redirect(request: &mut Request, status: StatusCode, url: Url) {
    let becomes_get = match status.as_u16() {
        301 | 302 => request.method == Method::POST,
        303 => request.method != Method::HEAD,
        _ => false,
    };
    if becomes_get {
        request.method = Method::GET;
        request.body = None;
        request.headers.remove(CONTENT_TYPE);
    }
    if url.origin() != request.url.origin() {
        let content_type = request.headers.remove(CONTENT_TYPE);
        request.headers.clear();
        request.headers.extend(content_type.map(|value| (CONTENT_TYPE, value)));
    }
    request.url = url;
}
