//! The apps, checked.

use std::collections::BTreeMap;

use goondan::{Error, ErrorCode, Result, Secret};
use reqwest::Url;

use crate::config::{AppConfig, Config, Flow, Subject};
use crate::seal::Key;

/// An app.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) name: String,
    pub(crate) grant: Grant,
    pub(crate) subject: Subject,
    pub(crate) token_url: Url,
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<Secret>,
    pub(crate) scopes: Vec<String>,
}

/// How access is granted.
#[derive(Debug)]
pub(crate) enum Grant {
    ClientCredentials,
    AuthorizationCode { authorize_url: Url, port: u16 },
    DeviceCode { device_url: Url },
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
        let url = |member: &str, url: Option<&str>| parse(&name, member, url);
        let token_url = url("tokenUrl", Some(&config.token_url))?;
        let grant = match config.flow {
            Flow::ClientCredentials if config.subject == Subject::User => {
                let message = format!("the app `{name}` acts for itself, so its subject is not a user");
                return Err(wrong(message).suggest("write `subject: global`, or choose another `flow`"));
            }
            Flow::ClientCredentials => Grant::ClientCredentials,
            Flow::AuthorizationCode => Grant::AuthorizationCode {
                authorize_url: url("authorizeUrl", config.authorize_url.as_deref())?,
                port: config.redirect_port,
            },
            Flow::DeviceCode => Grant::DeviceCode { device_url: url("deviceUrl", config.device_url.as_deref())? },
        };
        let AppConfig { subject, client_id, client_secret, scopes, .. } = config;
        Ok(Self { name, grant, subject, token_url, client_id, client_secret, scopes })
    }

    /// Returns a scope of `scopes` that the app does not have.
    pub(crate) fn lacks<'a>(&self, scopes: &'a [String]) -> Option<&'a String> {
        scopes.iter().find(|scope| !self.scopes.contains(scope))
    }

    /// Returns what a token was issued for besides the subject. A token of other settings is not used.
    pub(crate) fn identity(&self) -> [&str; 3] {
        [&self.name, self.token_url.as_str(), &self.client_id]
    }

    pub(crate) fn flow(&self) -> Flow {
        match self.grant {
            Grant::ClientCredentials => Flow::ClientCredentials,
            Grant::AuthorizationCode { .. } => Flow::AuthorizationCode,
            Grant::DeviceCode { .. } => Flow::DeviceCode,
        }
    }
}

/// Parses a URL to which secrets are sent.
fn parse(app: &str, member: &str, url: Option<&str>) -> Result<Url> {
    let url = url.ok_or_else(|| wrong(format!("the app `{app}` has no `{member}`, which its flow needs")))?;
    let url = Url::parse(url).map_err(|error| wrong(format!("`{member}` of the app `{app}` is no URL: {error}")))?;
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_local => Ok(url),
        _ => Err(wrong(format!("`{member}` of the app `{app}` does not begin with `https://`"))),
    }
}

fn wrong(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::EXT_CONFIG, message)
}
