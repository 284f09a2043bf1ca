//! Services of AWS: requests are signed with keys of the environment or of a profile, and answers unframed.

mod credentials;
mod region;
mod sign;

use std::time::SystemTime;

use goondan_core::BoxFuture;
use goondan_lock::Lock;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::http::{Failure, FailureKind, HttpClient, Incoming, Outgoing, Transport, unframed};
use credentials::{Credentials, Found};
use sign::Scope;

pub(crate) use credentials::VARIABLES;
pub(crate) use region::{address, is_aws, is_region, region_of};
pub(crate) use sign::encoded;

/// Sends requests to a service of AWS.
///
/// A request that has a key already goes as it is. Others get the token in `AWS_BEARER_TOKEN_BEDROCK`, or are signed
/// with the keys in the environment or in a profile, which are read for each request: those of a session expire. Only
/// hosts of AWS and of this machine are sent a token or a signature.
pub(crate) struct Aws {
    client: HttpClient,
    /// Where signed requests go. `None` if the host must not have a signature.
    region: Option<String>,
    /// Whether requests without any key are refused here.
    needs_key: bool,
    /// Returns a variable of the environment.
    variable: fn(&str) -> Option<String>,
    /// The newest credentials, which are masked as long as this exists.
    known: Lock<Option<Credentials>>,
}

impl Aws {
    /// Returns the transport to the host of `base`, whose requests are signed for `region`, or else for the region that
    /// the host is in.
    pub(crate) fn new(client: HttpClient, base: &Uri, is_loopback: bool, region: Option<&str>) -> Self {
        let host = base.host().unwrap_or_default();
        let is_aws = is_aws(host);
        let region = region.or_else(|| region_of(host)).filter(|_| is_aws || is_loopback).map(str::to_owned);
        let variable = |name: &str| std::env::var(name).ok();
        Self { client, region, needs_key: is_aws, variable, known: Lock::new(None) }
    }

    fn authorize(&self, request: &mut Outgoing) -> Result<(), Failure> {
        let Some(region) = &self.region else { return Ok(()) };
        let found = credentials::find(self.variable)?;
        match &found {
            Found::Token(token) => insert(&mut request.headers, AUTHORIZATION, &format!("Bearer {}", token.expose()))?,
            Found::Keys(keys) => {
                let scope = Scope { region, service: "bedrock" };
                for (name, value) in sign::headers(request, keys, scope, SystemTime::now())? {
                    insert(&mut request.headers, HeaderName::from_static(name), &value)?;
                }
            }
            Found::Nothing(why) if self.needs_key => return Err(Failure::new(FailureKind::Auth, why.clone())),
            // A server on this machine may need none.
            Found::Nothing(_) => {}
        }
        *self.known.lock() = found.into_credentials();
        Ok(())
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), Failure> {
    let illegal = |_| Failure::new(FailureKind::Auth, "a key of AWS has characters that no header can have");
    let mut value = HeaderValue::from_str(value).map_err(illegal)?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

impl Transport for Aws {
    fn send(&self, mut request: Outgoing) -> BoxFuture<'_, Result<Incoming, Failure>> {
        Box::pin(async move {
            if !request.headers.contains_key(AUTHORIZATION) {
                self.authorize(&mut request)?;
            }
            Ok(unframed(self.client.send(request).await?))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use goondan_covers::covers;

    use super::*;

    /// Returns the header with the key of a request to `base`.
    fn authorization(
        base: &'static str,
        region: Option<&str>,
        variable: fn(&str) -> Option<String>,
    ) -> Result<Option<String>, Failure> {
        let client = HttpClient::new(Duration::from_secs(1), true);
        let aws = Aws { variable, ..Aws::new(client, &base.parse().unwrap(), base.contains("127.0.0.1"), region) };
        let mut request = Outgoing::new(format!("{base}/model/m/converse-stream"), HeaderMap::new(), &b"{}"[..]);
        aws.authorize(&mut request)?;
        let header = request.headers.get(AUTHORIZATION);
        assert!(header.is_none_or(HeaderValue::is_sensitive));
        Ok(header.map(|value| value.to_str().unwrap().to_owned()))
    }

    fn keys(name: &str) -> Option<String> {
        match name {
            "AWS_ACCESS_KEY_ID" => Some("AKIDEXAMPLE".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("secret-of-the-environment".to_owned()),
            _ => None,
        }
    }

    fn token(name: &str) -> Option<String> {
        (name == "AWS_BEARER_TOKEN_BEDROCK").then(|| "token-of-the-environment".to_owned())
    }

    const HOST: &str = "https://bedrock-runtime.eu-central-1.amazonaws.com";
    const LOCAL: &str = "http://127.0.0.1:9";

    #[test]
    #[covers("AWS-01")]
    fn only_hosts_of_aws_and_of_this_machine_get_a_signature_or_a_token() {
        for (base, region, signed) in [
            (HOST, None, Some("eu-central-1")),
            (HOST, Some("us-east-1"), Some("us-east-1")),
            (LOCAL, Some("us-east-1"), Some("us-east-1")),
            (LOCAL, None, None),
            ("https://gateway.example", Some("us-east-1"), None),
            ("https://amazonaws.com.gateway.example", Some("us-east-1"), None),
        ] {
            let header = authorization(base, region, keys).unwrap();
            let is_signed = |header: &String| {
                header.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
                    && header.contains(&format!("/{}/bedrock/aws4_request, ", signed.unwrap()))
            };
            assert_eq!(header.as_ref().map(is_signed), signed.map(|_| true), "{base}: {header:?}");
            let header = authorization(base, region, token).unwrap();
            assert_eq!(header.as_deref(), signed.map(|_| "Bearer token-of-the-environment"), "{base}");
        }
    }

    #[test]
    fn without_keys_a_server_on_this_machine_is_asked_and_aws_is_not() {
        let nothing = |_: &str| None;
        assert_eq!(authorization(LOCAL, Some("us-east-1"), nothing).unwrap(), None);
        let failure = authorization(HOST, None, nothing).unwrap_err();
        assert_eq!(failure.kind(), FailureKind::Auth);
        assert!(failure.reason().contains("AWS_ACCESS_KEY_ID"), "{}", failure.reason());
    }
}
