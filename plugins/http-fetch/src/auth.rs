//! Which sites are sent a token.

use std::collections::BTreeMap;

use goondan::{Error, ErrorCode, Result};
use goondan_oauth_client::TokenRequest;
use reqwest::Url;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::guard::Allowed;

/// The token for a site.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SiteAuth {
    /// The app, as the config of the extension `oauth` names it.
    pub oauth: String,
    /// The scopes that the token must have; some of the scopes of the app.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// The requests for tokens, by the origin of the site.
#[derive(Debug)]
pub(crate) struct Sites(BTreeMap<String, TokenRequest>);

impl Sites {
    /// # Errors
    /// `E_EXT_CONFIG` when a site is no origin, or cannot be sent a token safely.
    pub(crate) fn new(sites: BTreeMap<String, SiteAuth>, allowed: &Allowed) -> Result<Self> {
        let request = |(site, auth): (String, SiteAuth)| {
            let is_site = |url: &Url| url.as_str().strip_prefix(&origin(url)) == Some("/");
            // Without TLS, others on the way can read the token.
            let is_safe = |url: &Url| url.scheme() == "https" || url.scheme() == "http" && allowed.has(url);
            match Url::parse(&site).ok().filter(|url| is_site(url) && is_safe(url)) {
                Some(url) => Ok((origin(&url), TokenRequest::new(auth.oauth).scopes(auth.scopes))),
                None => Err(Error::new(ErrorCode::EXT_CONFIG, format!("`auth` has `{site}`, which is no site"))
                    .suggest("write it as `https://api.example.com`; one of `allowHosts` may begin with `http://`")),
            }
        };
        Ok(Self(sites.into_iter().map(request).collect::<Result<_>>()?))
    }

    /// Returns what to ask for before a request to `url`.
    pub(crate) fn token(&self, url: &Url) -> Option<&TokenRequest> {
        self.0.get(&origin(url))
    }
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
