//! The pattern of a subscription: a name, or a glob over names.
// LEGACY-EVENTS-01

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorCode, Result};

/// Selects the events of a subscription: a name such as `turn.completed`, or a glob such as `workspace.*`, in which `*`
/// matches any text.
///
/// ```
/// use goondan::event::EventPattern;
/// let pattern: EventPattern = "workspace.*".parse()?;
/// assert!(pattern.matches("workspace.repoAvailable"));
/// assert!(!pattern.matches("turn.completed"));
/// # Ok::<(), goondan::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventPattern(String);

impl EventPattern {
    /// Returns whether the pattern matches an event called `name`.
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }

    /// Returns the pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EventPattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() || !text.bytes().all(|byte| byte == b'*' || is_legal(byte)) {
            return Err(Error::new(ErrorCode::EVENT_NAME, format!("`{text}` is not a name or a pattern of events"))
                .suggest("use letters, digits, `.`, `_`, `-` and `:`, and `*` for any text, as in `workspace.*`"));
        }
        Ok(Self(text.to_owned()))
    }
}

/// Returns an error unless `name` is the name of an event, which a pattern can match exactly.
pub(super) fn check_name(name: &str) -> Result<()> {
    if !name.is_empty() && name.bytes().all(is_legal) {
        return Ok(());
    }
    Err(Error::new(ErrorCode::EVENT_NAME, format!("`{name}` is not a name of an event"))
        .suggest("use letters, digits, `.`, `_`, `-` and `:`, as in `workspace.changed`"))
}

fn is_legal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':')
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of events that a subscription delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deliveries {
    /// All, until the subscription is cancelled.
    All,
    /// Only the first one.
    // LEGACY-EVENTS-02
    One,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, name, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.bc", false),
            ("a.*", "a.b.c", true),
            ("a.*", "a.", true),
            ("a.*", "b.a.", false),
            ("*", "anything", true),
            ("*.failed", "turn.failed", true),
            ("*.failed", "turn.failed.x", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("ab*b", "ab", false),
        ] {
            let pattern: EventPattern = pattern.parse().unwrap();
            assert_eq!(pattern.matches(name), expected, "{pattern} {name}");
        }
        for illegal in ["", "a b", "a\n"] {
            assert_eq!(illegal.parse::<EventPattern>().unwrap_err().code(), &ErrorCode::EVENT_NAME);
        }
    }
}
