//! Config of the apps.

use std::collections::BTreeMap;

use goondan::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The config of the extension.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The apps that other extensions can ask for tokens of, by name.
    pub apps: BTreeMap<String, AppConfig>,
    /// The place of the tokens.
    pub store: StoreConfig,
}

/// An app, as it is registered with an authorization server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppConfig {
    /// The way in which access is granted.
    pub flow: Flow,
    /// On whose behalf access is granted.
    pub subject: Subject,
    /// The resource of the tokens: the URL of an MCP server, or of another protected resource. With the flow
    /// `authorization-code` it is enough, if the resource announces its authorization server: then `tokenUrl`,
    /// `authorizeUrl` and `clientId` are found out.
    #[schemars(extend("x-goondan" = "host"))]
    pub resource: Option<String>,
    /// The token endpoint of the authorization server.
    #[schemars(extend("x-goondan" = "host"))]
    pub token_url: Option<String>,
    /// The page on which a person allows an access, for the flow `authorization-code`.
    #[schemars(extend("x-goondan" = "host"))]
    pub authorize_url: Option<String>,
    /// The endpoint that gives codes, for the flow `device-code`.
    #[schemars(extend("x-goondan" = "host"))]
    pub device_url: Option<String>,
    /// The id of the app.
    pub client_id: Option<String>,
    /// The secret of the app, if it has one.
    pub client_secret: Option<Secret>,
    /// The scopes that the app may have. Requests can ask for some of them. If there are none, and the authorization
    /// server is found out, they are those that the resource announces.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The port on this machine to which a browser is sent back, if the authorization server wants it to be always the
    /// same. The default is a port that is free.
    #[serde(default)]
    pub redirect_port: u16,
}

/// The way in which access is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Flow {
    /// To the app itself, without a person.
    ClientCredentials,
    /// By a person, on a page in a browser on this machine.
    AuthorizationCode,
    /// By a person, who enters a code on a page in any browser.
    DeviceCode,
}

/// On whose behalf access is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// One person, or the app itself, for all conversations.
    Global,
    /// The user whose turn runs. Each conversation has tokens of its own.
    User,
}

/// The place of tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StoreConfig {
    /// The key with which tokens are encrypted: 32 bytes in base64, as `openssl rand -base64 32` prints them.
    pub key: Option<Secret>,
}
