//! The outcome of a turn, as its commit stores it.

use std::borrow::Cow;
use std::fmt;

use goondan_core::{AgentEvent, Error, ErrorCode, EventId, FinishReason, TurnId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The number of characters of an error's message that are stored.
const MAX_MESSAGE: usize = 500;

/// The outcome of a turn, and the event that it answered. The answer itself is in the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum TurnOutcome {
    /// The turn ended with a result.
    #[non_exhaustive]
    Answered {
        /// The event that started the turn.
        event: EventId,
        /// Why the turn ended.
        finish_reason: FinishReason,
    },
    /// The turn ended with an error.
    #[non_exhaustive]
    Failed {
        /// The event that started the turn.
        event: EventId,
        /// The code of the error.
        code: ErrorCode,
        /// Its message; a long one is cut.
        message: String,
    },
    /// The turn was interrupted, and closed later without an answer.
    #[non_exhaustive]
    Interrupted {
        /// The event that started the turn. `None` if its record does not say, as in files of other implementations.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<EventId>,
    },
    /// The turn was cancelled.
    #[non_exhaustive]
    Cancelled {
        /// The event that started the turn.
        event: EventId,
    },
    /// The turn took the conversation back: the messages of earlier turns are gone. Its commit makes those
    /// [`Rewound`](Self::Rewound).
    // BACK-01
    #[non_exhaustive]
    Rewind {
        /// The event that started the turn, which the runtime made.
        event: EventId,
        /// The turns that are gone, oldest first.
        turns: Vec<TurnId>,
    },
    /// A later turn took the conversation back, and this one is gone. Its event stays answered.
    // BACK-01
    #[non_exhaustive]
    Rewound {
        /// The event that started the turn.
        event: EventId,
    },
}

impl TurnOutcome {
    /// The outcome of a turn that ended with a result.
    pub fn answered(event: EventId, finish_reason: FinishReason) -> Self {
        Self::Answered { event, finish_reason }
    }

    /// The outcome of a turn that `error` ended.
    pub fn failed(event: EventId, error: &Error) -> Self {
        let message = error.message();
        let message = match message.char_indices().nth(MAX_MESSAGE) {
            Some((end, _)) => Cow::Owned(format!("{}…", &message[..end])),
            None => message,
        };
        Self::Failed { event, code: error.code().clone(), message: message.into_owned() }
    }

    /// The outcome of a turn that was interrupted.
    pub fn interrupted(event: Option<EventId>) -> Self {
        Self::Interrupted { event }
    }

    /// The outcome of a turn that was cancelled.
    pub fn cancelled(event: EventId) -> Self {
        Self::Cancelled { event }
    }

    /// The outcome of a turn that took back `turns`.
    pub fn rewind(event: EventId, turns: Vec<TurnId>) -> Self {
        Self::Rewind { event, turns }
    }

    /// Returns the same outcome for another event that the turn answers.
    // STEER-01
    #[must_use]
    pub fn of(&self, event: EventId) -> Self {
        match self.clone() {
            Self::Answered { finish_reason, .. } => Self::Answered { event, finish_reason },
            Self::Failed { code, message, .. } => Self::Failed { event, code, message },
            Self::Interrupted { .. } => Self::Interrupted { event: Some(event) },
            Self::Cancelled { .. } => Self::Cancelled { event },
            Self::Rewind { turns, .. } => Self::Rewind { event, turns },
            Self::Rewound { .. } => Self::Rewound { event },
        }
    }

    /// Returns the event that started the turn.
    pub fn event(&self) -> Option<&EventId> {
        match self {
            Self::Answered { event, .. }
            | Self::Failed { event, .. }
            | Self::Cancelled { event }
            | Self::Rewind { event, .. }
            | Self::Rewound { event } => Some(event),
            Self::Interrupted { event } => event.as_ref(),
        }
    }

    /// Returns the turns that this one took back.
    // BACK-01
    pub fn taken_back(&self) -> &[TurnId] {
        match self {
            Self::Rewind { turns, .. } => turns,
            _ => &[],
        }
    }
}

/// A turn that has ended, as stores keep it, so that its event is answered once.
// ONCE-01
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EndedTurn {
    /// The turn.
    pub turn: TurnId,
    /// The digest of its event, if the store knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<EventDigest>,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: TurnOutcome,
    /// Whether its commit [`forgets`](super::Commit::forgets).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgets: bool,
}

impl EndedTurn {
    /// The turn `turn`.
    pub fn new(turn: TurnId, digest: Option<EventDigest>, outcome: TurnOutcome) -> Self {
        Self { turn, digest, outcome, forgets: false }
    }

    /// Sets whether its commit [`forgets`](super::Commit::forgets).
    #[must_use]
    pub fn forgets(self, forgets: bool) -> Self {
        Self { forgets, ..self }
    }

    /// Takes in that a later turn took back `turns`. A store does so with every turn that it keeps when it commits an
    /// outcome with [`taken_back`](TurnOutcome::taken_back), or when it reads both.
    // BACK-01
    pub fn rewind(&mut self, turns: &[TurnId]) {
        if turns.contains(&self.turn)
            && let Some(event) = self.outcome.event().cloned()
        {
            self.outcome = TurnOutcome::Rewound { event };
        }
    }
}

/// A digest of the content of an event: its type, its text and files, its source, its principal and its metadata. Two
/// events with one id and different digests are not the same event. It is written as 16 hexadecimal digits.
// ONCE-01
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventDigest(u64);

impl EventDigest {
    /// Returns the digest of `event`.
    pub fn of(event: &AgentEvent) -> Self {
        let mut hash = Fnv::new();
        hash.text(&event.kind);
        hash.text(event.input.as_deref().unwrap_or_default());
        hash.text(&event.source.kind);
        hash.text(&event.source.name);
        if let Some(principal) = event.auth.as_ref().and_then(|auth| auth.principal.as_ref()) {
            hash.text(&principal.kind);
            hash.text(&principal.id);
        }
        if !event.content.is_empty() {
            hash.json(&event.content);
        }
        for members in [&event.source.other, &event.metadata] {
            if !members.is_empty() {
                hash.json(members);
            }
        }
        if let Some(answer) = &event.answer {
            hash.json(answer);
        }
        Self(hash.0)
    }
}

impl fmt::Display for EventDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for EventDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map(Self).map_err(de::Error::custom)
    }
}

/// FNV-1a with 64 bits: the same in every version, and fast for the short texts that most events are.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Adds a text and its end, so that two texts are not taken for others with the same letters.
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0xff]);
    }

    fn json(&mut self, value: &impl Serialize) {
        // Maps of strings are always written, and this writer does not fail.
        _ = serde_json::to_writer(&mut *self, value);
        self.bytes(&[0xff]);
    }
}

impl std::io::Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
