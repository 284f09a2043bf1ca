//! The JSON form of an error, for another binary.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Error, Parts, causes, detail};
use crate::name::{ExtensionName, TurnId};
use crate::outcome::{FailedTurn, ToolCallSummary};
use crate::secret::{Masked, mask_cow, mask_text};

/// An [`Error`] that is serialized in full: everything but the types of its causes, which arrive as text.
#[derive(Debug)]
pub struct WireError(pub Error);

impl WireError {
    /// Returns a copy of `error`, whose causes are texts.
    pub fn copy(error: &Error) -> Error {
        let parts = error.parts();
        let texts = causes(parts.source.as_deref().map(|source| source as &dyn StdError));
        Error::from_parts(Parts {
            code: parts.code.clone(),
            message: parts.message.clone(),
            suggestion: parts.suggestion.clone(),
            extension: parts.extension.clone(),
            part: parts.part.clone(),
            turn: parts.turn.clone(),
            retry_after: parts.retry_after,
            retryable: parts.retryable,
            details: parts.details.clone(),
            source: Cause::chain(texts),
            secrets: Masked::default(),
        })
    }

    /// Drops the error. Its causes are values of the extension `owner`, unless it names another one.
    pub fn drop_of(mut self, owner: &str) {
        self.0.0.drop_source(owner);
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ErrorRepr<'a> {
    code: Cow<'a, str>,
    /// `None` when the error only wraps its first cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suggestion: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extension: Option<ExtensionName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnRepr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<Duration>,
    #[serde(default)]
    retryable: bool,
    #[serde(default, skip_serializing_if = "no_details")]
    details: Cow<'a, Map<String, Value>>,
    /// The cause, its cause, and so on.
    #[serde(default)]
    causes: Vec<String>,
}

fn no_details(details: &Map<String, Value>) -> bool {
    details.is_empty()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TurnRepr {
    id: TurnId,
    steps: u32,
    tool_calls: Vec<ToolCallSummary>,
}

impl Serialize for WireError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.0.parts();
        let turn = parts.turn.clone();
        let repr = ErrorRepr {
            code: self.0.code().as_str().into(),
            message: parts.message.as_deref().map(Cow::Borrowed),
            suggestion: self.0.suggestion().map(Cow::Borrowed),
            extension: self.0.extension().cloned(),
            part: self.0.part().map(Cow::Borrowed),
            turn: turn.map(|FailedTurn { id, steps, tool_calls }| TurnRepr { id, steps, tool_calls }),
            retry_after: self.0.retry_delay(),
            retryable: self.0.is_retryable(),
            details: Cow::Borrowed(&parts.details),
            causes: causes(parts.source.as_deref().map(|source| source as &dyn StdError)),
        };
        repr.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WireError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let repr = ErrorRepr::deserialize(deserializer)?;
        // The sender does not know the secrets of this binary.
        let owned = |text: Cow<'_, str>| mask_cow(Cow::Owned(text.into_owned()));
        Ok(Self(Error::from_parts(Parts {
            code: repr.code.into_owned().into(),
            message: repr.message.map(owned),
            suggestion: repr.suggestion.map(owned),
            extension: repr.extension,
            part: repr.part.map(owned),
            turn: repr.turn.map(|TurnRepr { id, steps, tool_calls }| FailedTurn { id, steps, tool_calls }),
            retry_after: repr.retry_after,
            retryable: repr.retryable,
            details: repr.details.into_owned().into_iter().filter_map(|(name, value)| detail(name, value)).collect(),
            source: Cause::chain(repr.causes),
            secrets: Masked::default(),
        })))
    }
}

/// A cause that was received as text.
#[derive(Debug)]
struct Cause {
    text: String,
    source: Option<Box<Self>>,
}

impl Cause {
    /// Returns the causes of an error, the nearest first.
    fn chain(texts: Vec<String>) -> Option<Box<dyn StdError + Send + Sync>> {
        let first = texts.into_iter().rev().fold(None, |source, mut text| {
            mask_text(&mut text);
            Some(Box::new(Self { text, source }))
        });
        first.map(|cause| cause as Box<dyn StdError + Send + Sync>)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}
