//! The kind `Server`: how `goondan serve` serves the agents.
// SERVE-03

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use goondan_core::{AgentName, ErrorCode};

use super::AgentResource;
use super::entry::digest;
use crate::kind::Kind;
use crate::read::{Cursor, Document, MapReader, Names, Resource};
use crate::schema::{LIMITS, PRINCIPAL, RIGHTS, SERVER, UI};

/// A server: its address, those who may use it, and its limits.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerResource {
    /// `metadata.name`.
    pub name: String,
    /// `spec.listen`: the address, if it is written.
    pub listen: Option<SocketAddr>,
    /// `spec.agents`: the agents that are served; `None` for all.
    pub agents: Option<Vec<AgentName>>,
    /// `spec.principals`: those who may use it.
    pub principals: Vec<ServerPrincipal>,
    /// `spec.limits.turns`: how many turns run at the same time.
    pub turns: Option<NonZeroU32>,
    /// `spec.limits.perPrincipal`: how many turns of one principal run or are queued.
    pub turns_per_principal: Option<NonZeroU32>,
    /// `spec.limits.bodyBytes`: how many bytes the body of a request has.
    pub body_bytes: Option<NonZeroU32>,
    /// `spec.ui.onDisconnect` is `cancel`: a turn ends when the page goes away that asked for it.
    pub cancels_on_disconnect: bool,
}

/// One who may use a server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerPrincipal {
    /// Its name.
    pub name: String,
    /// The SHA-256 of its token, in hexadecimal digits.
    pub token_sha256: String,
    /// The agents that it may use; `None` for all that are served.
    pub agents: Option<Vec<AgentName>>,
    /// The keys that it may use, as they are written; `None` for `{principal}:*`.
    pub instances: Option<String>,
    /// Its rights, of `turn`, `read`, `decide` and `delete`; `None` for all.
    pub may: Option<Vec<String>>,
}

impl Resource for ServerResource {
    const KIND: Kind = Kind::Server;

    fn name(&self) -> &str {
        &self.name
    }
}

impl ServerResource {
    pub(crate) fn read(document: &Document<'_>, names: &Names<'_>, agents: &[Arc<AgentResource>]) -> Option<Self> {
        let spec = MapReader::new(document.spec.as_ref()?, &SERVER)?;
        let listen = spec.get("listen").and_then(|listen| read_address(&listen));
        let served = spec.get("agents").map(|list| read_agents(&list, names, agents));
        let principals = spec.get("principals").map(|list| read_principals(&list, names, agents)).unwrap_or_default();
        let limits = spec.get("limits").and_then(|limits| MapReader::new(&limits, &LIMITS));
        let limit = |key| limits.as_ref()?.get(key)?.whole(1).and_then(NonZeroU32::new);
        let ui = spec.get("ui").and_then(|ui| MapReader::new(&ui, &UI));
        let on_disconnect = ui.and_then(|ui| ui.get("onDisconnect")?.choice(&["continue", "cancel"]));
        Some(Self {
            name: document.name()?.to_owned(),
            listen,
            agents: served,
            principals,
            turns: limit("turns"),
            turns_per_principal: limit("perPrincipal"),
            body_bytes: limit("bodyBytes"),
            cancels_on_disconnect: on_disconnect == Some("cancel"),
        })
    }
}

fn read_address(cursor: &Cursor<'_>) -> Option<SocketAddr> {
    let address = cursor.text()?.parse().ok();
    if address.is_none() {
        cursor.expected("an IP address and a port, such as `127.0.0.1:7717`");
    }
    address
}

fn read_agents(list: &Cursor<'_>, names: &Names<'_>, agents: &[Arc<AgentResource>]) -> Vec<AgentName> {
    let items = list.items().unwrap_or_default();
    items.iter().filter_map(|item| Some(names.resolve(item, agents)?.name.clone())).collect()
}

fn read_principals(list: &Cursor<'_>, names: &Names<'_>, agents: &[Arc<AgentResource>]) -> Vec<ServerPrincipal> {
    let mut principals: Vec<ServerPrincipal> = Vec::new();
    for item in list.items().unwrap_or_default() {
        let Some(fields) = MapReader::new(&item, &PRINCIPAL) else { continue };
        let name = fields.require("name").and_then(|name| Some((name.text()?.to_owned(), name)));
        let token = fields.require("tokenSha256").and_then(|token| digest(&token, "the token"));
        let served = fields.get("agents").map(|list| read_agents(&list, names, agents));
        let instances = fields.get("instances").and_then(|keys| read_keys(&keys));
        let may = fields.get("may").map(|may| {
            let rights = may.items().unwrap_or_default();
            rights.iter().filter_map(|right| Some(right.choice(&RIGHTS)?.to_owned())).collect()
        });
        let (Some((name, cursor)), Some(token)) = (name, token) else { continue };
        if !is_principal(&name) {
            cursor.expected("1 to 64 letters, digits, `-`, `_`, `.` and `@`");
        }
        if principals.iter().any(|earlier| earlier.token_sha256 == token) {
            let message = format!("the token of `{name}` is that of another principal");
            cursor.error(ErrorCode::CONFIG_SCHEMA, message, "give each principal a token of its own");
        }
        principals.push(ServerPrincipal { name, token_sha256: token, agents: served, instances, may });
    }
    principals
}

fn is_principal(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    (1..=64).contains(&name.len()) && name.chars().all(is_letter)
}

fn read_keys(cursor: &Cursor<'_>) -> Option<String> {
    let keys = cursor.text()?;
    if keys.is_empty() || keys.find('*').is_some_and(|at| at + 1 < keys.len()) {
        cursor.expected("a key, or the beginning of keys and `*`");
        return None;
    }
    Some(keys.to_owned())
}
