//! Sends a request, and follows its redirects.

use std::time::Instant;

use goondan::extension::ExtensionApi;
use goondan::tool::ToolContext;
use goondan::{Error, Result};
use goondan_oauth_client::{Token, get_access_token};
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url};
use tokio::time::timeout;

use crate::auth::Sites;
use crate::failure::{FAILED, TIMEOUT, failed};
use crate::guard::{Allowed, Guard};
use crate::request::Request;
use crate::response::Fetched;

/// The most redirects that are followed.
const REDIRECTS: usize = 10;

/// Sends requests.
#[derive(Debug)]
pub(crate) struct Fetcher {
    api: ExtensionApi,
    client: Client,
    allowed: Allowed,
    sites: Sites,
}

impl Fetcher {
    /// # Errors
    /// When the root certificates of the system cannot be read.
    pub(crate) fn new(api: ExtensionApi, allowed: Allowed, sites: Sites) -> Result<Self> {
        // It follows no redirects: each is checked here. A proxy would look up the name itself, and connect to any
        // address.
        let client = goondan_http::builder()?.dns_resolver(Guard(allowed.clone())).no_proxy();
        Ok(Self { api, client: client.build()?, allowed, sites })
    }

    /// Sends a request, follows its redirects, and reads the answer.
    ///
    /// # Errors
    /// `E_HTTP_ADDRESS` when an address is not public, also after a redirect; `E_HTTP_REQUEST` when a redirect leads to
    /// another scheme; `E_HTTP_TIMEOUT`; `E_HTTP_FAILED`; those of the extension `oauth` when there is no token.
    pub(crate) async fn fetch(&self, ctx: &ToolContext<'_>, request: Request) -> Result<Fetched> {
        let (limit, started) = (request.timeout, Instant::now());
        let fetched = timeout(limit, async {
            let (method, max_bytes) = (request.method.clone(), request.max_bytes);
            // What is read of the response is masked as long as there is the token.
            let (response, _token) = self.follow(request).await?;
            Fetched::read(ctx, method, response, max_bytes, started).await
        });
        fetched.await.unwrap_or_else(|_| {
            let message = format!("there was no whole answer within {} ms", limit.as_millis());
            Err(Error::new(TIMEOUT, message).suggest("give it a longer `timeoutMs`, or use another URL"))
        })
    }

    async fn follow(&self, mut request: Request) -> Result<(Response, Option<Token>)> {
        for _ in 0..=REDIRECTS {
            self.allowed.check(&request.url)?;
            let (response, token) = self.send(&request).await?;
            match target(&response) {
                Some(url) => redirect(&mut request, response.status(), url),
                None => return Ok((response, token)),
            }
        }
        let message = format!("there were more than {REDIRECTS} redirects, the last one to {}", request.url);
        Err(Error::new(FAILED, message).suggest("use another URL"))
    }

    /// Sends a request, with a token if it is for a site that is sent one. A token that is refused is renewed once.
    async fn send(&self, request: &Request) -> Result<(Response, Option<Token>)> {
        let Some(wanted) = self.sites.token(&request.url) else {
            return Ok((self.send_with(request, None).await?, None));
        };
        let token = get_access_token(&self.api, wanted).await?;
        let response = self.send_with(request, Some(&token)).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok((response, Some(token)));
        }
        let token = get_access_token(&self.api, &wanted.clone().instead_of(&token)).await?;
        Ok((self.send_with(request, Some(&token)).await?, Some(token)))
    }

    async fn send_with(&self, request: &Request, token: Option<&Token>) -> Result<Response> {
        let mut headers = request.headers.clone();
        // A few bytes of an encoded body can become very many.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(token) = token {
            let mut value = HeaderValue::try_from(format!("{} {}", token.kind, token.text.expose()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let sent = self.client.request(request.method.clone(), request.url.clone()).headers(headers);
        let sent = request.body.iter().fold(sent, |sent, body| sent.body(body.clone()));
        sent.send().await.map_err(|error| failed(&error))
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
