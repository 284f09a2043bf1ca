//! Pieces of a model's answer, sent while it is being generated.

use std::fmt;
use std::time::Duration;

/// Receives the pieces of a model's answer.
///
/// ```
/// use goondan::model::{DeltaSink, ModelDelta};
///
/// let receive = |delta: ModelDelta<'_>| println!("{delta:?}");
/// let deltas = DeltaSink::to(&receive);
/// deltas.send(ModelDelta::Text { part: 0, text: "Hel" });
/// deltas.send(ModelDelta::Text { part: 0, text: "lo" });
/// ```
#[derive(Clone, Copy)]
pub struct DeltaSink<'a>(Option<&'a (dyn Fn(ModelDelta<'_>) + Sync)>);

impl<'a> DeltaSink<'a> {
    /// Returns a receiver that drops all pieces.
    pub fn none() -> Self {
        Self(None)
    }

    /// Returns a receiver that calls `receive` with each piece, on the task that generates the answer.
    pub fn to(receive: &'a (dyn Fn(ModelDelta<'_>) + Sync)) -> Self {
        Self(Some(receive))
    }

    /// Returns whether pieces are received. If not, a model may leave out the work of making them.
    pub fn wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Sends a piece.
    pub fn send(&self, delta: ModelDelta<'_>) {
        if let Some(receive) = self.0 {
            receive(delta);
        }
    }
}

impl fmt::Debug for DeltaSink<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.wanted() { "DeltaSink(wanted)" } else { "DeltaSink(none)" })
    }
}

/// A piece of an answer. `part` is the index of its part in [`ModelResponse::content`](super::ModelResponse::content).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ModelDelta<'a> {
    /// Text.
    Text {
        /// The part that the text belongs to.
        part: u32,
        /// The piece.
        text: &'a str,
    },
    /// Reasoning.
    Reasoning {
        /// The part that the text belongs to.
        part: u32,
        /// The piece.
        text: &'a str,
    },
    /// The start of a tool call.
    ToolCall {
        /// The part that the call will be.
        part: u32,
        /// The id of the call.
        id: &'a str,
        /// The tool's name as the model wrote it.
        name: &'a str,
    },
    /// Arguments of a tool call.
    Arguments {
        /// The part of the call.
        part: u32,
        /// A piece of their JSON text.
        json: &'a str,
    },
    /// The answer begins again. Receivers discard the pieces of it that were sent so far.
    Restart {
        /// Why.
        reason: &'a str,
        /// The time that the model waits before it is asked again, which the runtime reports as
        /// [`ModelRetried`](goondan_core::RuntimeEvent::ModelRetried). `None` if the provider begins again by itself.
        wait: Option<Duration>,
    },
}
