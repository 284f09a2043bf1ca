//! HTTP client for the ready-made extensions of goondan, its models, and extensions of users.
//!
//! [`builder`] returns a builder of `reqwest`, for the rest of the settings, such as timeouts.
//!
//! ```
//! use std::time::Duration;
//!
//! use goondan::prelude::*;
//!
//! /// Looks up the weather.
//! #[derive(Debug)]
//! pub struct Weather {
//!     client: reqwest::Client,
//! }
//!
//! #[goondan::extension(name = "weather")]
//! impl Weather {
//!     #[init]
//!     fn new() -> Result<Self> {
//!         let client = goondan_http::builder()?.connect_timeout(Duration::from_secs(5));
//!         Ok(Self { client: client.timeout(Duration::from_secs(20)).build()? })
//!     }
//!
//!     /// Returns the weather of today.
//!     #[tool(effect = read)]
//!     async fn today(&self) -> Result<String> {
//!         let answer = self.client.get("https://weather.example/today").send().await?;
//!         Ok(answer.error_for_status()?.text().await?)
//!     }
//! }
//! ```
//!
//! The feature `tls` is on by default; without it, there is only http.
#![cfg_attr(docsrs, feature(doc_cfg))]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::error::Error;
use std::fmt;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

/// Returns a builder of a client for requests. The client checks servers against the root certificates of the system,
/// and follows no redirects: they would carry keys to another host. It has no timeouts.
///
/// # Errors
/// [`NoRootCertificates`].
pub fn builder() -> Result<ClientBuilder, NoRootCertificates> {
    let builder = Client::builder().redirect(Policy::none()).user_agent(concat!("goondan/", env!("CARGO_PKG_VERSION")));
    #[cfg(feature = "tls")]
    let builder = builder.tls_backend_preconfigured(tls()?);
    Ok(builder)
}

/// Returns the settings of TLS. They name their cryptography: a library must not choose it for the whole process.
#[cfg(feature = "tls")]
fn tls() -> Result<rustls::ClientConfig, NoRootCertificates> {
    use std::sync::Arc;

    use rustls_platform_verifier::BuilderVerifierExt;

    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| NoRootCertificates(error.to_string()))?;
    Ok(config.with_no_client_auth())
}

/// The root certificates of the system cannot be read, as in a container without any.
#[derive(Debug)]
pub struct NoRootCertificates(String);

impl fmt::Display for NoRootCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the root certificates of the system cannot be read: {}; install its package `ca-certificates`, or name a \
             file of certificates in the variable SSL_CERT_FILE",
            self.0
        )
    }
}

impl Error for NoRootCertificates {}
