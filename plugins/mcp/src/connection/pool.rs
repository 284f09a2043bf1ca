//! The connections of the program, which conversations may share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Weak};

use goondan::extension::InitContext;
use goondan::{Error, ErrorCode, Result, json};
use goondan_lock::Lock;

use super::Connection;
use crate::config::{Attach, Protocol, Scope, Sizes, Transport};

/// All connections, by the settings that must be the same for two conversations to share one. A library has a pool of
/// its own.
static POOL: LazyLock<Lock<HashMap<String, Weak<Connection>>>> = LazyLock::new(Lock::default);

/// Returns the connection for an extension: a new one, or one that exists.
///
/// The key alone decides: an extension that is created again with other tools finds its connection.
///
/// # Errors
/// `E_EXT_CONFIG` when the transport cannot be used.
// PATTERN-MCP-11, PATTERN-MCP-12
pub(crate) fn connection(
    transport: &Transport,
    protocol: Protocol,
    attach: Attach,
    sizes: Sizes,
    ctx: &InitContext,
) -> Result<Arc<Connection>> {
    // It belongs to the conversation's user.
    if matches!(transport, Transport::Http { auth: Some(_), .. }) && attach.scope != Scope::Agent {
        return Err(Error::new(
            ErrorCode::EXT_CONFIG,
            "a connection with `transport.auth` belongs to one conversation",
        )
        .suggest("write `attach: { scope: agent }`"));
    }
    let directory = match ctx.bundle_root() {
        Some(root) => root.to_owned(),
        None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
    };
    let place = (ctx.workspace(), ctx.bundle_root(), ctx.extension(), ctx.instance());
    // Names alone do not do: agents in one program that store in different places may have the same.
    let conversation = (ctx.agent(), ctx.conversation());
    let key = match attach.scope {
        Scope::Agent => json::to_string(&(transport, protocol, attach, sizes, &directory, place, conversation)),
        Scope::Instance => json::to_string(&(transport, protocol, attach, sizes, &directory, place)),
        Scope::Shared => json::to_string(&(transport, protocol, attach, sizes, &directory)),
    };
    let key = key.map_err(|error| Error::new(ErrorCode::EXT_CONFIG, format!("the transport has no text: {error}")))?;
    let mut pool = POOL.lock();
    if let Some(connection) = pool.get(&key).and_then(Weak::upgrade) {
        return Ok(connection);
    }
    pool.retain(|_, connection| connection.strong_count() > 0);
    let connection = Connection::new(transport, protocol, sizes, &directory, attach.mode)?;
    pool.insert(key, Arc::downgrade(&connection));
    Ok(connection)
}
