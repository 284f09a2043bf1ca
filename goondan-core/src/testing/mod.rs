//! Owns the harness for tests of extensions: a conversation with a scripted model, and all that it leaves behind (TEST-01).
//!
//! A [`Chat`] is one conversation of an agent that has the extensions under test. It runs as in a program, on a memory
//! store and without network; afterwards the test looks at what the model was sent, what the conversation holds, what was
//! emitted, and what was logged.
//!
//! ```
//! # use goondan_core::{API_VERSION, Extension, ExtensionDescriptor};
//! # struct Notes;
//! # impl Extension for Notes {
//! #     const DESCRIPTOR: &'static ExtensionDescriptor = &ExtensionDescriptor {
//! #         name: "notes", description: "", package: "", version: "", api_version: API_VERSION, middlewares: &[],
//! #         tools: &[], subscriptions: &[], requires: &[], config_schema: &|| true.into(),
//! #         register: &|api, _| Box::pin(async move { api.logger().info("ready"); Ok(()) }),
//! #     };
//! # }
//! use goondan_core::ScriptItem;
//! use goondan_core::testing::Chat;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> goondan_core::Result<()> {
//! // In an `async fn` under `#[tokio::test]`:
//! let chat = Chat::with::<Notes>(json!({ "limit": 5 })).script([ScriptItem::say("hi")]).start().await?;
//! let turn = chat.say("hello").await?;
//! assert_eq!(turn.text(), "hi");
//! assert_eq!(chat.last_request().transcript(), ["user: hello"]);
//! assert_eq!(chat.transcript().await, ["user: hello", "assistant: hi"]);
//! assert_eq!(chat.events("turn.*").len(), 2);
//! assert_eq!(chat.logs()[0].text, "ready");
//! # Ok(())
//! # }
//! ```
//!
//! A crate of extensions asks for it in its `[dev-dependencies]`: `goondan = { version = "…", features = ["testing"] }`.
//!
//! # Layout
//! `setup`: what a chat is made of · `chat` · what is looked at afterwards: `request`, which `model` records, `log`, and what
//! the `probe` hears · [`time`]: the clock.

mod chat;
mod log;
mod model;
mod probe;
mod request;
mod setup;
#[cfg(test)]
mod tests;
pub mod time;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use chat::Chat;
#[cfg(test)]
pub(crate) use log::Log;
pub use log::LogLine;
pub use request::RecordedRequest;
pub use setup::ChatBuilder;

/// A record stays readable after an assertion failed elsewhere.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
