//! What the tests of all interfaces share: a server, a transport in memory, recordings, conversations and requests.

mod conversation;
mod part;
mod recording;
mod request;
mod server;
mod transport;

pub(crate) use conversation::{Asked, ask, told};
pub(crate) use part::{call, data, result, text, weather};
pub(crate) use recording::{Framing, Recording};
pub(crate) use request::{requests_are_as_written_down, sent_body};
pub(crate) use server::{Reply, Server};
pub(crate) use transport::{Played, Sent, Step};

use goondan_models::ModelConfig;

/// Returns the config of the model `m` at an address, whose failures are not repeated.
pub(crate) fn config(url: &str) -> ModelConfig {
    let mut config = ModelConfig::new("m");
    config.base_url = Some(url.to_owned());
    config.api_key = Some(goondan_core::Secret::new("key-for-tests-4711"));
    config.retries.max = 1;
    config
}
