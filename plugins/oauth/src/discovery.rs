//! The announcements of a protected resource about its authorization server, and of that about itself: RFC 9728, RFC
//! 8414, OpenID Connect Discovery, and additions of MCP.

use std::time::Duration;

use goondan::json;
use goondan_oauth_client::code;
use reqwest::header::{ACCEPT, HeaderMap, WWW_AUTHENTICATE};
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::app::is_local;
use crate::failure::Failure;
use crate::server::{Refusal, Server, reason};

/// The longest time of all requests.
const LIMIT: Duration = Duration::from_secs(20);

/// An authorization server, and the scopes it is asked for.
#[derive(Debug)]
pub(crate) struct Announced {
    /// The resource of tokens, as it spells itself.
    pub(crate) resource: String,
    /// The scopes of requests if the config names none.
    pub(crate) scopes: Vec<String>,
    pub(crate) issuer: Issuer,
    pub(crate) authorize_url: Url,
    pub(crate) token_url: Url,
    pub(crate) registration_url: Option<Url>,
}

/// The name of an authorization server.
#[derive(Clone, Debug)]
pub(crate) struct Issuer {
    pub(crate) name: String,
    /// Whether all its answers to a sign-in have the name. RFC 9207.
    pub(crate) is_always_told: bool,
}

#[derive(Deserialize)]
struct ResourceMetadata {
    resource: String,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ServerMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    registration_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    scopes_supported: Option<Vec<String>>,
    authorization_response_iss_parameter_supported: Option<bool>,
}

/// The answer of a resource to a request without a token.
#[derive(Default)]
struct Challenge {
    metadata: Option<String>,
    scope: Option<String>,
}

impl Issuer {
    /// Returns whether an answer to a sign-in, with the issuer `told`, is of this server.
    pub(crate) fn answers(&self, told: Option<&str>) -> bool {
        told.map_or(!self.is_always_told, |told| told == self.name)
    }
}

impl Server {
    /// Finds the authorization server of a resource.
    pub(crate) async fn discover(&self, resource: &Url) -> Result<Announced, Failure> {
        timeout(LIMIT, self.announced(resource)).await.map_err(|_| {
            let message =
                format!("`{resource}` and its authorization server did not say within {LIMIT:?} how to sign in");
            Failure::new(code::REFRESH_FAILED, message)
        })?
    }

    async fn announced(&self, resource: &Url) -> Result<Announced, Failure> {
        let challenge = self.challenge(resource).await?;
        let places = match &challenge.metadata {
            Some(place) => vec![safe(resource, "resource_metadata", place)?],
            None => {
                let name = "/.well-known/oauth-protected-resource";
                with_path(resource, [format!("{name}{}", path(resource)), name.to_owned()])
            }
        };
        let protected: ResourceMetadata = self.first(&places).await?.ok_or_else(|| {
            let message = format!("`{resource}` announces no authorization server, in no answer and at no known path");
            wrong(message)
        })?;
        if !Url::parse(&protected.resource).is_ok_and(|announced| covers(&announced, resource)) {
            return Err(wrong(format!("`{resource}` announces itself as another resource, `{}`", protected.resource)));
        }
        let Some(issuer) = protected.authorization_servers.unwrap_or_default().into_iter().next() else {
            return Err(wrong(format!("`{resource}` announces no authorization server in its metadata")));
        };
        let place = safe(resource, "authorization_servers", &issuer)?;
        let path = path(&place);
        let (oauth, openid) = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration");
        let places =
            with_path(&place, [format!("{oauth}{path}"), format!("{openid}{path}"), format!("{path}{openid}")]);
        let server: ServerMetadata = self.first(&places).await?.ok_or_else(|| {
            wrong(format!("the authorization server `{issuer}` of `{resource}` does not announce its pages"))
        })?;
        if Url::parse(&server.issuer).ok() != Some(place) {
            let message =
                format!("the authorization server `{issuer}` announces itself as another, `{}`", server.issuer);
            return Err(wrong(message));
        }
        // MCP takes an answer that is silent about it for a no.
        if !server.code_challenge_methods_supported.iter().any(|name| name == "S256") {
            return Err(wrong(format!("the authorization server `{issuer}` does not announce PKCE with `S256`")));
        }
        let url = |member: &str, text: &str| safe(resource, member, text);
        let registration_url = server.registration_endpoint.as_deref();
        let split = |scope: String| scope.split_whitespace().map(str::to_owned).collect();
        let mut scopes: Vec<_> = challenge.scope.map(split).or(protected.scopes_supported).unwrap_or_default();
        // Without it, some servers give no refresh token.
        let offline = server.scopes_supported.unwrap_or_default().into_iter().find(|scope| scope == "offline_access");
        if !scopes.is_empty() && !scopes.iter().any(|scope| scope == "offline_access") {
            scopes.extend(offline);
        }
        Ok(Announced {
            resource: protected.resource,
            scopes,
            authorize_url: url("authorization_endpoint", &server.authorization_endpoint)?,
            token_url: url("token_endpoint", &server.token_endpoint)?,
            registration_url: registration_url.map(|text| url("registration_endpoint", text)).transpose()?,
            issuer: Issuer {
                name: server.issuer,
                is_always_told: server.authorization_response_iss_parameter_supported == Some(true),
            },
        })
    }

    /// Sends a request without a token.
    async fn challenge(&self, resource: &Url) -> Result<Challenge, Failure> {
        let request = self.0.get(resource.clone()).header(ACCEPT, "application/json, text/event-stream");
        // The body may be a stream that does not end.
        let response = request.send().await.map_err(|error| unclear(resource, &reason(&error.without_url())))?;
        let asks = response.status() == StatusCode::UNAUTHORIZED;
        Ok(if asks { Challenge::read(response.headers()) } else { Challenge::default() })
    }

    /// Returns the first document of these.
    async fn first<T: DeserializeOwned>(&self, places: &[Url]) -> Result<Option<T>, Failure> {
        for place in places {
            let (status, body) = match self.send(self.0.get(place.clone())).await {
                Ok(answer) => answer,
                Err(Refusal::Unreachable { reason }) => return Err(unclear(place, &reason)),
                Err(refusal) => return Err(unclear(place, &format!("{refusal:?}"))),
            };
            if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
                return Err(unclear(place, &format!("it answers {status}")));
            }
            // Some sites have a page for people at every path.
            if let (true, Ok(document)) = (status.is_success(), json::from_slice(&body)) {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }
}

impl Challenge {
    fn read(headers: &HeaderMap) -> Self {
        let mut challenge = Self::default();
        for header in headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|header| header.to_str().ok()) {
            for (name, value) in bearer_parameters(header) {
                match name.as_str() {
                    "resource_metadata" => challenge.metadata = Some(value),
                    "scope" => challenge.scope = Some(value),
                    _ => {}
                }
            }
        }
        challenge
    }
}

/// Returns the parameters of the scheme `Bearer` in a header. RFC 9110, 11.6.1.
fn bearer_parameters(header: &str) -> Vec<(String, String)> {
    let (mut parameters, mut is_bearer, mut rest) = (Vec::new(), false, header);
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return parameters;
        }
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let name = &rest[..end];
        rest = &rest[end..];
        let Some(value) = rest.strip_prefix('=') else {
            is_bearer = name.eq_ignore_ascii_case("bearer");
            continue;
        };
        let (mut text, mut is_quoted, mut is_escaped) = (String::new(), false, false);
        let mut length = value.len();
        for (place, c) in value.char_indices() {
            match c {
                _ if is_escaped => (is_escaped, _) = (false, text.push(c)),
                '\\' if is_quoted => is_escaped = true,
                '"' => is_quoted = !is_quoted,
                ' ' | '\t' | ',' if !is_quoted => {
                    length = place;
                    break;
                }
                _ => text.push(c),
            }
        }
        rest = &value[length..];
        if is_bearer {
            parameters.push((name.to_ascii_lowercase(), text));
        }
    }
}

/// Returns the URLs with these paths, each once.
fn with_path<const N: usize>(url: &Url, paths: [String; N]) -> Vec<Url> {
    let mut urls = Vec::new();
    for path in paths {
        let mut url = url.clone();
        url.set_path(&path);
        url.set_query(None);
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

fn path(url: &Url) -> &str {
    url.path().trim_end_matches('/')
}

/// Returns whether `announced` is the resource, or has it below its path.
fn covers(announced: &Url, resource: &Url) -> bool {
    let below = resource.path().strip_prefix(path(announced));
    announced.origin() == resource.origin()
        && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        && announced.fragment().is_none()
        && announced.query().is_none_or(|query| resource.query() == Some(query))
}

/// Parses a URL that `resource` or its authorization server announces. A resource elsewhere names nothing on this
/// machine.
fn safe(resource: &Url, member: &str, text: &str) -> Result<Url, Failure> {
    let url = Url::parse(text).ok();
    let allowed = |url: &Url| match url.scheme() {
        "https" | "http" if is_local(url) => is_local(resource),
        scheme => scheme == "https",
    };
    url.filter(allowed).ok_or_else(|| {
        wrong(format!("`{resource}`, or its authorization server, announces an unsafe URL as `{member}`: `{text}`"))
    })
}

fn unclear(url: &Url, reason: &str) -> Failure {
    Failure::new(code::REFRESH_FAILED, format!("`{url}` does not say how to sign in: {reason}"))
}

/// Why an announcement cannot be used.
fn wrong(message: String) -> Failure {
    let suggestion = "write `authorizeUrl`, `tokenUrl` and `clientId` of a server that you trust";
    Failure { suggestion, ..Failure::new(code::CONFIGURATION_ERROR, message) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn parameters_are_those_of_the_scheme_bearer() {
        let header = concat!(
            r#"Basic realm="a, b", scope=no, Bearer realm="a \"b\"",Resource_Metadata="https://a.b/c?d=e,f" "#,
            r#", scope="x y", Negotiate abc==, error=no"#,
        );
        let found = bearer_parameters(header);
        let expected = [("realm", "a \"b\""), ("resource_metadata", "https://a.b/c?d=e,f"), ("scope", "x y")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for odd in ["", "Bearer", "Bearer realm=\"open", "Bearer =, ==\"", "Bearer x=\"\\"] {
            let _ = bearer_parameters(odd);
        }
    }

    #[test]
    fn a_resource_covers_what_is_below_its_path() {
        let is_covered = |announced, resource| covers(&Url::parse(announced).unwrap(), &Url::parse(resource).unwrap());
        for announced in ["https://a.b", "https://a.b/", "https://a.b/x", "https://a.b/x/", "https://a.b:443/x/mcp"] {
            assert!(is_covered(announced, "https://a.b/x/mcp"), "{announced}");
        }
        for announced in ["https://a.b/x/m", "https://a.b/X", "http://a.b/x", "https://a.b:444", "https://b.b/x/mcp"] {
            assert!(!is_covered(announced, "https://a.b/x/mcp"), "{announced}");
        }
    }

    #[test]
    fn only_a_resource_on_this_machine_names_others_there() {
        let (far, near) = ("https://a.b/mcp", "http://127.0.0.1:1/mcp");
        let is_safe = |resource: &str, url: &str| safe(&Url::parse(resource).unwrap(), "x", url).is_ok();
        assert!(is_safe(far, "https://c.d/x") && is_safe(near, "https://c.d/x") && is_safe(near, "http://localhost:2"));
        for url in [
            "http://c.d/x",
            "http://127.0.0.1/x",
            "https://localhost",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "/x",
            "",
        ] {
            assert!(!is_safe(far, url), "{url}");
        }
    }
}
