//! Requests and responses: sent, limited in time and size, read as events, and sent again after a failure.

mod client;
mod events;
mod failure;
#[cfg(feature = "bedrock")]
mod frames;
mod limits;
mod retry;
mod sse;

pub use client::{Body, HttpClient, Incoming, Outgoing, Transport};
#[doc(hidden)]
pub use events::Events;
pub(crate) use failure::request_id;
pub use failure::{Failure, FailureKind};
#[cfg(feature = "bedrock")]
#[doc(hidden)]
pub use frames::unframed;
#[doc(hidden)]
pub use limits::{Broken, Clock, Limits};
#[doc(hidden)]
pub use retry::{Retries, Waits};
pub use sse::Event;
pub(crate) use sse::Parser;
