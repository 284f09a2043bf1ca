//! The apps, checked.

use std::collections::BTreeMap;

use goondan::{Error, ErrorCode, Result, Secret};
use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::config::{AppConfig, Config, Flow, Subject};
use crate::seal::{Key, exposed};

/// An app.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) name: String,
    pub(crate) grant: Grant,
    pub(crate) subject: Subject,
    pub(crate) scopes: Vec<String>,
}

/// The way in which access is granted.
#[derive(Debug)]
pub(crate) enum Grant {
    ClientCredentials {
        client: Client,
    },
    AuthorizationCode {
        authorize_url: Url,
        client: Client,
        port: u16,
    },
    /// As `AuthorizationCode`, at the authorization server that `resource` announces.
    Announced {
        resource: Url,
        own: Option<OwnClient>,
        port: u16,
    },
    DeviceCode {
        device_url: Url,
        client: Client,
    },
}

/// The app at a token endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Client {
    /// It begins with `https://`, or is on this machine.
    pub(crate) token_url: String,
    pub(crate) id: String,
    #[serde(serialize_with = "exposed")]
    pub(crate) secret: Option<Secret>,
    /// Whether the secret is sent in the body, instead of by HTTP Basic.
    pub(crate) secret_in_body: bool,
    /// The resource of its tokens. RFC 8707.
    pub(crate) resource: Option<String>,
}

/// The id and the secret of an app that was registered by hand.
#[derive(Clone, Debug)]
pub(crate) struct OwnClient {
    pub(crate) id: String,
    pub(crate) secret: Option<Secret>,
}

impl Config {
    /// Returns the apps and the key; `None` if there are no apps.
    ///
    /// # Errors
    /// `E_EXT_CONFIG`.
    pub(crate) fn check(self) -> Result<Option<(BTreeMap<String, App>, Key)>> {
        if self.apps.is_empty() {
            return Ok(None);
        }
        let key = self.store.key.ok_or_else(|| {
            wrong("`store.key` is missing: tokens are kept encrypted")
                .suggest("write `store: { key: { valueFrom: { env: GOONDAN_OAUTH_KEY } } }`")
        })?;
        let apps = self.apps.into_iter().map(|(name, app)| Ok((name.clone(), App::new(name, app)?)));
        Ok(Some((apps.collect::<Result<_>>()?, Key::new(&key)?)))
    }
}

impl App {
    fn new(name: String, config: AppConfig) -> Result<Self> {
        // It is a part of the name of a file.
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_legal) {
            return Err(wrong(format!("`apps` has `{name}`, which is no name of letters, digits, `-` and `_`")));
        }
        let AppConfig { subject, client_id, client_secret: secret, redirect_port: port, scopes, .. } = config;
        let url = |member: &str, url: Option<&str>| parse(&name, member, url);
        let resource = config.resource.as_deref().map(|resource| url("resource", Some(resource))).transpose()?;
        if resource.as_ref().is_some_and(|resource| resource.fragment().is_some()) {
            return Err(wrong(format!("`resource` of the app `{name}` has a fragment (`#`)")));
        }
        let token_url = config.token_url.as_deref();
        if let (Flow::AuthorizationCode, Some(resource), None, None) =
            (config.flow, &resource, &config.authorize_url, token_url)
        {
            if client_id.is_none() && secret.is_some() {
                return Err(wrong(format!("the app `{name}` has a `clientSecret` and no `clientId`")));
            }
            let own = client_id.map(|id| OwnClient { id, secret });
            let grant = Grant::Announced { resource: resource.clone(), own, port };
            return Ok(Self { name, grant, subject, scopes });
        }
        let client = || {
            Ok::<_, Error>(Client {
                token_url: url("tokenUrl", token_url)?.into(),
                id: client_id.ok_or_else(|| missing(&name, "clientId"))?,
                secret,
                secret_in_body: false,
                // As it is written: `Url` adds a slash to some.
                resource: config.resource.clone(),
            })
        };
        let grant = match config.flow {
            Flow::ClientCredentials if subject == Subject::User => {
                let message = format!("the app `{name}` acts for itself, so its subject is not a user");
                return Err(wrong(message).suggest("write `subject: global`, or choose another `flow`"));
            }
            Flow::ClientCredentials => Grant::ClientCredentials { client: client()? },
            Flow::AuthorizationCode => Grant::AuthorizationCode {
                authorize_url: url("authorizeUrl", config.authorize_url.as_deref())?,
                client: client()?,
                port,
            },
            Flow::DeviceCode => {
                Grant::DeviceCode { device_url: url("deviceUrl", config.device_url.as_deref())?, client: client()? }
            }
        };
        Ok(Self { name, grant, subject, scopes })
    }

    /// Returns a scope of `scopes` that the app does not have.
    pub(crate) fn lacks<'a>(&self, scopes: &'a [String]) -> Option<&'a String> {
        // The announcement of the resource is known from the sign-in on. Then the scopes of the token count.
        let is_announced = matches!(self.grant, Grant::Announced { .. }) && self.scopes.is_empty();
        scopes.iter().find(|scope| !is_announced && !self.scopes.contains(scope))
    }

    /// Returns the settings that a token was issued for besides the subject. A token of other settings is not used.
    pub(crate) fn identity(&self) -> Vec<&str> {
        match &self.grant {
            Grant::ClientCredentials { client }
            | Grant::AuthorizationCode { client, .. }
            | Grant::DeviceCode { client, .. } => {
                let known = [self.name.as_str(), &client.token_url, &client.id];
                known.into_iter().chain(client.resource.as_deref()).collect()
            }
            Grant::Announced { resource, own, .. } => {
                vec![&self.name, resource.as_str(), own.as_ref().map_or("", |own| &own.id)]
            }
        }
    }

    /// Returns the client that can refresh a token. One that was issued to an announced client is for its server alone,
    /// whatever the resource announces now.
    pub(crate) fn client(&self, issued_to: Option<&Client>) -> Option<Client> {
        match &self.grant {
            Grant::ClientCredentials { client }
            | Grant::AuthorizationCode { client, .. }
            | Grant::DeviceCode { client, .. } => Some(client.clone()),
            Grant::Announced { own: None, .. } => issued_to.cloned(),
            // The secret in the config may be a newer one.
            Grant::Announced { own: Some(own), .. } => {
                issued_to.map(|client| Client { secret: own.secret.clone(), ..client.clone() })
            }
        }
    }

    /// Returns whether the app registers itself with its authorization server.
    pub(crate) fn registers(&self) -> bool {
        matches!(self.grant, Grant::Announced { own: None, .. })
    }

    pub(crate) fn flow(&self) -> Flow {
        match self.grant {
            Grant::ClientCredentials { .. } => Flow::ClientCredentials,
            Grant::AuthorizationCode { .. } | Grant::Announced { .. } => Flow::AuthorizationCode,
            Grant::DeviceCode { .. } => Flow::DeviceCode,
        }
    }
}

/// Parses a URL to which secrets are sent.
fn parse(app: &str, member: &str, url: Option<&str>) -> Result<Url> {
    let url = url.ok_or_else(|| missing(app, member))?;
    let url = Url::parse(url).map_err(|error| wrong(format!("`{member}` of the app `{app}` is no URL: {error}")))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_local(&url) => Ok(url),
        _ => Err(wrong(format!("`{member}` of the app `{app}` does not begin with `https://`"))),
    }
}

/// Returns whether a URL is on this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn missing(app: &str, member: &str) -> Error {
    wrong(format!("the app `{app}` has no `{member}`, which its flow needs"))
}

fn wrong(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::EXT_CONFIG, message)
}
