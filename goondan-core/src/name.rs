//! Owns the names and ids: who may be called what, checked once when the value is made.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, ErrorCode, Result};

/// Makes a newtype over shared text whose only way in is `new`.
macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                *self.0 == *other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                *self.0 == **other
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

/// A name with a grammar: `new` refuses what breaks it.
macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        text_type! { $(#[$doc])* $name }

        impl $name {
            /// Checks `text` against the grammar.
            ///
            /// # Errors
            /// When `text` breaks the grammar; the message shows it.
            pub fn new(text: &str) -> Result<Self> {
                let check: fn(&str) -> Result<()> = $check;
                check(text).map(|()| Self(text.into()))
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                Self::new(text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// An id: any text, made up by us or given from outside.
macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        text_type! { $(#[$doc])* $name }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

name_type! {
    /// The name of an agent: lower-case words joined by hyphens, at most 63 characters.
    AgentName, |text| kebab(text).map_err(|why| name_error(ErrorCode::CONFIG_NAME, "agent", text, why))
}

name_type! {
    /// The name of an extension, which is its identity: lower-case words joined by hyphens, at most 63 characters.
    ///
    /// ```
    /// use goondan::ExtensionName;
    /// assert!(ExtensionName::new("message-window").is_ok());
    /// assert!(ExtensionName::new("MessageWindow").is_err());
    /// ```
    ExtensionName, |text| kebab(text).map_err(|why| name_error(ErrorCode::EXT_NAME, "extension", text, why))
}

name_type! {
    /// The full name of a tool, `<resource>__<tool>`, at most 64 characters (TOOL-01).
    ///
    /// ```
    /// use goondan::ToolName;
    /// let name = ToolName::new("notes__add")?;
    /// assert_eq!((name.resource(), name.tool()), ("notes", "add"));
    /// assert!(ToolName::new("add").is_err());
    /// # Ok::<(), goondan::Error>(())
    /// ```
    ToolName, |text| tool(text).map_err(|why| name_error(ErrorCode::TOOL_NAME, "tool", text, why))
}

name_type! {
    /// What tells the conversations of one agent apart: any text that is not empty, at most 1024 bytes.
    InstanceKey, |text| match text.len() {
        0 => Err(Error::new(ErrorCode::CONFIG_NAME, "an instance key must not be empty")),
        1..=1024 => Ok(()),
        long => Err(Error::new(
            ErrorCode::CONFIG_NAME,
            format!("an instance key has at most 1024 bytes; this one has {long}"),
        )),
    }
}

impl ToolName {
    /// The part before the two underscores.
    pub fn resource(&self) -> &str {
        self.0.split_once("__").map_or("", |(resource, _)| resource)
    }

    /// The part after the two underscores.
    pub fn tool(&self) -> &str {
        self.0.split_once("__").map_or("", |(_, tool)| tool)
    }
}

id_type! {
    /// The id of a message; unique within a conversation (F-MSG).
    MessageId
}
id_type! {
    /// The id of a turn.
    TurnId
}
id_type! {
    /// The id that the model gave to one tool call (CTX-13).
    ToolCallId
}
id_type! {
    /// The id of an input event.
    EventId
}
id_type! {
    /// The id that joins everything that one input caused: 32 hexadecimal digits (F-TRACE).
    TraceId
}

impl MessageId {
    /// A new id.
    pub fn random() -> Self {
        Self(random("msg-"))
    }
}

impl TurnId {
    /// A new id.
    pub fn random() -> Self {
        Self(random("turn-"))
    }
}

impl EventId {
    /// A new id.
    pub fn random() -> Self {
        Self(random("event-"))
    }
}

impl ToolCallId {
    /// A new id.
    pub fn random() -> Self {
        Self(random("call-"))
    }
}

impl TraceId {
    /// A new id.
    pub fn random() -> Self {
        Self(hexadecimal("", &[fastrand::u64(..), fastrand::u64(..)]))
    }
}

/// A prefix of at most 16 bytes, and 16 random hexadecimal digits.
fn random(prefix: &str) -> Arc<str> {
    hexadecimal(prefix, &[fastrand::u64(..)])
}

/// `prefix`, and 16 hexadecimal digits for each of `numbers`; together at most 32 bytes. Every message gets an id, and
/// `format!` would allocate several times for each.
#[expect(clippy::expect_used, reason = "a prefix and digits are text")]
fn hexadecimal(prefix: &str, numbers: &[u64]) -> Arc<str> {
    let mut text = [0; 32];
    let text = &mut text[..prefix.len() + 16 * numbers.len()];
    let (before, digits) = text.split_at_mut(prefix.len());
    before.copy_from_slice(prefix.as_bytes());
    for (digits, number) in digits.chunks_exact_mut(16).zip(numbers) {
        for (digits, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
            digits.copy_from_slice(&HEXADECIMAL[usize::from(byte)]);
        }
    }
    std::str::from_utf8(text).expect("it is text").into()
}

/// Each byte in two hexadecimal digits.
const HEXADECIMAL: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut bytes = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        bytes[byte] = [digits[byte / 16], digits[byte % 16]];
        byte += 1;
    }
    bytes
};

/// `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`, at most 63 characters.
fn kebab(text: &str) -> Result<(), &'static str> {
    const SHAPE: &str = "use lower-case letters and digits, in words joined by single hyphens, starting with a letter";
    if text.len() > 63 {
        return Err("use at most 63 characters");
    }
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let legal = text.starts_with(|first: char| first.is_ascii_lowercase()) && text.split('-').all(word);
    if legal { Ok(()) } else { Err(SHAPE) }
}

/// `^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`, at most 64 characters.
fn tool(text: &str) -> Result<(), &'static str> {
    const SHAPE: &str = "write `<resource>__<tool>`, each part of letters, digits, `-` and single `_`";
    if text.len() > 64 {
        return Err("use at most 64 characters");
    }
    let part = |part: &str| {
        part.split('_').all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
    };
    match text.split_once("__") {
        Some((resource, tool)) if part(resource) && part(tool) => Ok(()),
        _ => Err(SHAPE),
    }
}

fn name_error(code: ErrorCode, what: &str, text: &str, why: &'static str) -> Error {
    Error::new(code, format!("`{text}` is not a legal {what} name")).suggest(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_have_two_parts_and_single_underscores() {
        for legal in ["a__b", "my-ext__getData", "a_b__c_d", "x__1", "A__-"] {
            assert!(ToolName::new(legal).is_ok(), "{legal}");
        }
        let long = format!("a__{}", "b".repeat(62));
        for illegal in ["", "a", "a_b", "__b", "a__", "a___b", "a__b__c", "_a__b", "a__b_", "a__é", "a b__c", &long] {
            assert_eq!(ToolName::new(illegal).unwrap_err().code(), &ErrorCode::TOOL_NAME, "{illegal}");
        }
    }

    #[test]
    fn ids_are_a_prefix_and_hexadecimal_digits() {
        assert_eq!(&*hexadecimal("msg-", &[0x0123_4567_89ab_cdef]), "msg-0123456789abcdef");
        assert_eq!(&*hexadecimal("", &[0, 0xf]), "0000000000000000000000000000000f");
        assert_eq!(&*hexadecimal("event-", &[u64::MAX]), "event-ffffffffffffffff");
    }

    #[test]
    fn extension_names_are_kebab_case() {
        for legal in ["a", "message-window", "a1-2b"] {
            assert!(ExtensionName::new(legal).is_ok(), "{legal}");
        }
        let long = "a".repeat(64);
        for illegal in ["", "-a", "a-", "a--b", "1a", "A", "a_b", "é", &long] {
            assert_eq!(ExtensionName::new(illegal).unwrap_err().code(), &ErrorCode::EXT_NAME, "{illegal}");
        }
    }
}
