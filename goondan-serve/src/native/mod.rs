//! The native interface: turns, their streams, decisions, conversations.

pub(crate) mod instances;
pub(crate) mod turns;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use goondan_core::host::secret::mask;
use goondan_core::{Error, EventId};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::caller::Caller;
use crate::problem::Problem;

/// Returns a response with a JSON body.
pub(crate) fn json_of(value: &impl Serialize) -> Response {
    json_text(serde_json::to_string(value))
}

fn json_text(text: serde_json::Result<String>) -> Response {
    match text {
        Ok(body) => ([(CONTENT_TYPE, "application/json")], mask(&body).into_owned()).into_response(),
        Err(error) => Problem::from(Error::from(error)).into_response(),
    }
}

/// Returns the id of the event that a key of a client stands for, over one of the interfaces.
// SERVE-02
pub(crate) fn event_id(interface: &str, caller: &Caller, id: (&str, &str), key: &str) -> EventId {
    let mut digest = Sha256::new();
    for text in [interface, caller.principal().unwrap_or_default(), id.0, id.1, key] {
        digest.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        digest.update(text.as_bytes());
    }
    let digits: String = digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("key-{digits}").into()
}
