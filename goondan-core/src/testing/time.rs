//! Owns the clock of a test: 15 seconds, or 10 minutes, pass at once.
//!
//! Deadlines, delays and retries of the runtime go by the clock of `tokio`, which tests can stop: with [`pause`], or from
//! the beginning with `#[tokio::test(start_paused = true)]`. From then on nobody waits. Whenever all that is left to do is to
//! wait for a deadline, the clock jumps to the next one; [`advance`] lets time pass while nobody waits for it.
//!
//! ```
//! use std::time::Duration;
//!
//! use goondan_core::testing::{Chat, time};
//! use goondan_core::{BoxFuture, ErrorCode, Model, ModelRequest, ModelResponse, Result};
//!
//! /// Answers after a day.
//! struct Slow;
//!
//! impl Model for Slow {
//!     fn generate<'a>(&'a self, _: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
//!         Box::pin(async {
//!             tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
//!             Ok(ModelResponse::text("good morning"))
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! time::pause();
//! let chat = Chat::builder().model(Slow).start().await?;
//! // The ten minutes that a model has are over at once.
//! assert_eq!(chat.say("hello").await.unwrap_err().code(), &ErrorCode::MODEL_TIMEOUT);
//! time::advance(Duration::from_secs(15)).await;
//! # Ok(())
//! # }
//! ```
//!
//! Only that clock stops: `std::time::Instant`, the time stamps of messages and the durations in events go on as ever. And
//! what waits for something else, such as a network or a thread of its own, loses against every deadline.

#[doc(no_inline)]
pub use tokio::time::{advance, pause, resume};
