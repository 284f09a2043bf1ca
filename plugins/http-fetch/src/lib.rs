//! Tools that make HTTP requests, to public addresses only.
//!
//! # Layout
//! In the order of the data:
//!
//! - `request`: what the model asks for.
//! - `fetch`: sends a request, and follows its redirects.
//! - `auth`: which sites are sent a token.
//! - `guard`: refuses addresses that are not public, before a connection is made to them.
//! - `address`: which addresses are public.
//! - `response`: what the model reads; `shown`: the presentation for people.
//! - `failure`: the errors of the extension.

mod address;
mod auth;
mod failure;
mod fetch;
mod guard;
mod request;
mod response;
mod shown;

use std::collections::BTreeMap;

use goondan::prelude::*;
use reqwest::Method;

pub use auth::SiteAuth;
use auth::Sites;
use fetch::Fetcher;
use guard::Allowed;
use request::{Any, Get, Post, Request};
use response::Fetched;

/// The config of the extension.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("x-goondan" = { "host": "any public one" }))]
pub struct Config {
    /// Hosts that may be reached although their addresses are not public, each as it is in URLs: `localhost`,
    /// `192.168.1.7`, `[fd00::7]`. All of their ports may be.
    #[schemars(extend("x-goondan" = "host"))]
    pub allow_hosts: Vec<String>,
    /// The sites that are sent a token of the extension `oauth` with each request, such as `https://api.github.com`. No
    /// other site is sent one.
    #[schemars(extend("x-goondan" = "host"))]
    pub auth: BTreeMap<String, SiteAuth>,
}

/// The extension.
#[derive(Debug)]
pub struct HttpFetch {
    fetcher: Fetcher,
}

/// Lets the model make HTTP requests, to public addresses only.
#[goondan::extension(name = "http-fetch")]
impl HttpFetch {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        let allowed = Allowed::new(&config.allow_hosts)?;
        let sites = Sites::new(config.auth, &allowed)?;
        Ok(Self { fetcher: Fetcher::new(api, allowed, sites)? })
    }

    /// Fetches a URL by GET, and follows redirects. An answer such as 404 is not an error of this tool: look at
    /// `status`. Addresses of private networks are refused.
    #[tool(effect = read, timeout = "11m", present = shown::to_url)]
    async fn get(&self, input: Get, ctx: &ToolContext<'_>) -> Result<Fetched> {
        self.fetcher.fetch(ctx, Request::new(Method::GET, input.target)?).await
    }

    /// Sends data to a URL by POST, and follows redirects. An answer such as 404 is not an error of this tool: look at
    /// `status`. Addresses of private networks are refused.
    #[tool(timeout = "11m", present = shown::to_url)]
    async fn post(&self, input: Post, ctx: &ToolContext<'_>) -> Result<Fetched> {
        self.fetcher.fetch(ctx, Request::new(Method::POST, input.target)?.with(input.data)?).await
    }

    /// Makes an HTTP request with any method, and follows redirects. Prefer `http-fetch__get` where it is enough.
    #[tool(timeout = "11m", present = shown::with_method)]
    async fn request(&self, input: Any, ctx: &ToolContext<'_>) -> Result<Fetched> {
        self.fetcher.fetch(ctx, Request::new(input.method.into(), input.target)?.with(input.data)?).await
    }
}
