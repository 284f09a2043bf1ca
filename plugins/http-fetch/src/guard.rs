//! Refuses addresses that are not public, before a connection is made to them.
//!
//! The client connects to no other addresses than those that [`Guard`] returns, so a name that leads elsewhere the next
//! time it is looked up gains nothing. It looks up no addresses, though, which are therefore checked with the URL.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use goondan::{Error, ErrorCode, Result};
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::is_public;
use crate::failure::{REQUEST, Refused};

/// The hosts that may be reached although their addresses are not public.
#[derive(Clone, Debug)]
pub(crate) struct Allowed(Arc<BTreeSet<String>>);

impl Allowed {
    /// # Errors
    /// `E_EXT_CONFIG` when one is no host.
    pub(crate) fn new(hosts: &[String]) -> Result<Self> {
        let normal = |host: &String| {
            // As it will be in a URL: in lower case, and an address in its usual form.
            let url = Url::parse(&format!("http://{host}/")).ok();
            let is_host = (host.ends_with(']') || !host.contains(':')) && !host.contains('/');
            url.filter(|_| is_host).and_then(|url| url.host_str().map(str::to_owned)).ok_or_else(|| {
                Error::new(ErrorCode::EXT_CONFIG, format!("`allowHosts` has `{host}`, which is no host"))
                    .suggest("write a name or an address, without a scheme and a port")
            })
        };
        Ok(Self(Arc::new(hosts.iter().map(normal).collect::<Result<_>>()?)))
    }

    /// Returns whether the host of `url` may be reached whatever its address is.
    pub(crate) fn has(&self, url: &Url) -> bool {
        url.host_str().is_some_and(|host| self.0.contains(host))
    }

    /// Checks what can be checked before the name is looked up.
    ///
    /// # Errors
    /// `E_HTTP_REQUEST` for another scheme than http, `E_HTTP_ADDRESS` for an address that is not public.
    pub(crate) fn check(&self, url: &Url) -> Result<()> {
        let host = url.host_str().unwrap_or_default();
        if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
            let message = format!("`{url}` is no URL of http or https");
            return Err(Error::new(REQUEST, message).suggest("use a URL that begins with `https://`"));
        }
        let address = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
        match address {
            Some(address) if !is_public(address) && !self.0.contains(host) => Err(Refused(host.to_owned()).error()),
            _ => Ok(()),
        }
    }
}

/// Looks up names, and leaves out addresses that are not public.
#[derive(Debug)]
pub(crate) struct Guard(pub(crate) Allowed);

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.0.0.contains(name.as_str());
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses: Vec<SocketAddr> = found.filter(|address| allowed || is_public(address.ip())).collect();
            if addresses.is_empty() {
                return Err(Refused(name.as_str().to_owned()).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
