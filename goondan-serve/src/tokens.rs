//! The tokens of principals.
// SERVE-03

use std::path::Path;

use goondan_core::{Error, ErrorCode, Result};
use sha2::{Digest, Sha256};

/// The tokens that a service accepts, each of a principal. Only their digests are kept.
///
/// ```
/// use goondan_serve::Tokens;
///
/// let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"; // of `test`
/// let tokens = Tokens::parse(&format!("# who may talk to the agents\nada: {digest}\n"))?;
/// assert_eq!(tokens.principal("test"), Some("ada"));
/// assert_eq!(tokens.principal("guess"), None);
/// # Ok::<(), goondan::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<(String, [u8; 32])>);

impl Tokens {
    /// Reads a file with a line for each principal: its name, `:`, and the SHA-256 of its token in hexadecimal digits.
    ///
    /// # Errors
    /// `E_SERVE_TOKENS` when it cannot be read, has another line, or no principal.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!("the tokens in {} cannot be read", path.display());
            Error::new(ErrorCode::SERVE_TOKENS, message)
                .suggest("write a line `NAME: SHA256` for each principal")
                .caused_by(error)
        })?;
        Self::parse(&text)
    }

    /// Reads the lines of such a file.
    ///
    /// # Errors
    /// As [`Tokens::read`].
    pub fn parse(text: &str) -> Result<Self> {
        let mut tokens = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = line.split_once(':').and_then(|(name, digest)| Some((name.trim(), bytes(digest.trim())?)));
            match read {
                Some((name, digest)) if is_name(name) => tokens.push((name.to_owned(), digest)),
                _ => return Err(refuse(&format!("line {number} of the tokens is no name and digest"))),
            }
        }
        if tokens.is_empty() { Err(refuse("there are no tokens")) } else { Ok(Self(tokens)) }
    }

    /// Returns the principal whose token this is. It takes as long for every token.
    pub fn principal(&self, token: &str) -> Option<&str> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let mut found = None;
        for (name, known) in &self.0 {
            let difference = known.iter().zip(&digest).fold(0, |difference, (known, byte)| difference | (known ^ byte));
            if difference == 0 {
                found = Some(name.as_str());
            }
        }
        found
    }
}

/// Returns whether a name can stand in keys without meaning something else there.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@".contains(c))
}

fn bytes(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn refuse(message: &str) -> Error {
    Error::new(ErrorCode::SERVE_TOKENS, message.to_owned()).suggest(
        "write `NAME: SHA256` on each line, such as what `printf %s TOKEN | sha256sum` prints after the name of a \
         principal: letters, digits, `-`, `_`, `.` and `@`",
    )
}
