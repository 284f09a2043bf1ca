//! The beginning of a request that the model has read before.
// CACHE-01

use serde::{Deserialize, Serialize};

use crate::name::ExtensionName;

/// The beginning of a request that it has in common with the previous request of the conversation to the same model,
/// the part that a provider's cache of prompts can keep. Characters are those of the instructions, the tools and the
/// messages, in the order in which the model reads them.
///
/// ```
/// use goondan::event::KeptPrefix;
///
/// let all = KeptPrefix::new(1_200, 1_200);
/// let half = KeptPrefix::new(600, 1_200);
/// assert_eq!((all.share(), half.share()), (1.0, 0.5));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeptPrefix {
    /// The characters of the previous request up to the first difference.
    pub kept: u64,
    /// All characters of the previous request.
    pub of: u64,
    /// The first difference, unless the next request begins with the whole previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<PrefixBreak>,
}

impl KeptPrefix {
    /// A prefix of `kept` of all `of` characters.
    pub fn new(kept: u64, of: u64) -> Self {
        Self { kept, of, broken: None }
    }

    /// Returns the share that is kept, from 0 to 1.
    ///
    /// ```
    /// use goondan::event::KeptPrefix;
    ///
    /// assert_eq!(KeptPrefix::new(50, 200).share(), 0.25);
    /// assert_eq!(KeptPrefix::new(0, 0).share(), 1.0, "nothing is lost of nothing");
    /// ```
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 characters")]
    pub fn share(&self) -> f64 {
        if self.of == 0 { 1.0 } else { self.kept as f64 / self.of as f64 }
    }
}

/// The first difference between two requests: see [`KeptPrefix`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PrefixBreak {
    /// The part of the request.
    pub part: RequestPart,
    /// The index of the tool or of the message in the previous request, from 0.
    pub index: u32,
    /// The name of the tool, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The change.
    pub change: PrefixChange,
    /// The extension whose layer did it, if it is known. The runtime and reloads have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension_name: Option<ExtensionName>,
}

impl PrefixBreak {
    /// A difference that no extension is known to have made.
    pub fn new(part: RequestPart, index: usize, change: PrefixChange) -> Self {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Self { part, index, tool_name: None, change, extension_name: None }
    }
}

/// A part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RequestPart {
    /// The tools.
    Tools,
    /// The agent's instructions.
    System,
    /// The messages.
    Messages,
    /// A part that this version does not know.
    #[serde(other)]
    Other,
}

/// A change of a tool or a message of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PrefixChange {
    /// Another one came before it.
    Added,
    /// It is gone.
    Removed,
    /// It has another content.
    Replaced,
    /// Its place is another one.
    Moved,
    /// A change that this version does not know.
    #[serde(other)]
    Other,
}

macro_rules! names {
    ($($type:ident { $($variant:ident = $name:literal,)* })*) => {
        $(impl $type {
            /// Returns the name, as in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        })*
    };
}

names! {
    RequestPart { Tools = "tools", System = "system", Messages = "messages", Other = "other", }
    PrefixChange {
        Added = "added", Removed = "removed", Replaced = "replaced", Moved = "moved", Other = "other",
    }
}
