//! A harness for tests of extensions: a conversation with a scripted model, and a record of everything that happens in
//! it.
//!
//! A [`Chat`] is one conversation of an agent with the extensions under test. It runs as in a program, with an
//! in-memory store and without network. Afterwards the test inspects the requests to the model, the conversation
//! itself, the events, and the log.
//!
//! ```
//! use goondan::prelude::*;
//! use goondan::testing::Chat;
//! use goondan::json;
//! use goondan::model::ScriptItem;
//!
//! struct Notes;
//!
//! #[goondan::extension(name = "notes")]
//! impl Notes {
//!     #[init]
//!     fn new(api: ExtensionApi) -> Self {
//!         api.logger().info("ready");
//!         Self
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> goondan::Result<()> {
//! // In an `async fn` under `#[tokio::test]`:
//! let chat = Chat::with::<Notes>(json!({})).script([ScriptItem::say("hi")]).start().await?;
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
//! A crate of extensions enables it in its `[dev-dependencies]`: `goondan = { version = "…", features = ["testing"]
//! }`.

// Layout: `setup` builds a `chat`. Its records are `request`, which `model` writes, `log`, and the events and tool
// results of `probe`. `time` is the clock. TEST-01.

mod chat;
mod log;
mod model;
mod probe;
mod request;
mod setup;
#[cfg(test)]
mod tests;
pub mod time;

pub use chat::Chat;
#[cfg(test)]
pub(crate) use log::LogCapture;
pub use log::LogLine;
pub use request::RecordedRequest;
pub use setup::ChatBuilder;
