//! The clock of a test, on which minutes pass at once.
//!
//! Deadlines, delays and retries of the runtime use the clock of `tokio`, which a test can pause: with [`pause`], or
//! from the beginning with `#[tokio::test(start_paused = true)]`. While it is paused and all tasks wait, the clock
//! jumps to the next deadline. [`advance`] moves it while no task waits for a deadline.
//!
//! ```
//! use std::time::Duration;
//!
//! use goondan::testing::{Chat, time};
//! use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
//! use goondan::{BoxFuture, ErrorCode, Result};
//!
//! /// Answers after a day.
//! struct Slow;
//!
//! impl Model for Slow {
//!     fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
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
//! // The deadline of a model call, ten minutes, is reached at once.
//! assert_eq!(chat.say("hello").await.unwrap_err().code(), &ErrorCode::MODEL_TIMEOUT);
//! time::advance(Duration::from_secs(15)).await;
//! # Ok(())
//! # }
//! ```
//!
//! Extensions in a library have a clock of their own, in the library's tokio, which cannot be paused from
//! outside: their timers take as long as they say, and deadlines of the program, for example of a tool call, fire
//! first. Test the extension linked, as [`Chat::with`](super::Chat::with) does; a library runs the same code.
//!
//! Only this clock is paused: `std::time::Instant`, the timestamps of messages and the durations in events are not
//! affected. A task that waits for anything but a deadline, such as the network or another thread, does not stop the
//! clock: every deadline fires first.

#[doc(no_inline)]
pub use tokio::time::{advance, pause, resume};
