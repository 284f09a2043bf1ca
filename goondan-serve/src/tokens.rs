//! The principals of a service, and their rights.
// SERVE-03

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use goondan_core::{AgentName, Error, ErrorCode, Result};
use sha2::{Digest, Sha256};

/// The tokens that a service accepts, and the rights of each. Only their digests are kept.
///
/// ```
/// use goondan_serve::Tokens;
///
/// let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"; // of `test`
/// let tokens = Tokens::parse(&format!("# who may talk to the agents\nada: {digest}\n"))?;
/// assert_eq!(tokens.grant("test").map(|grant| grant.name()), Some("ada"));
/// assert!(tokens.grant("guess").is_none());
/// # Ok::<(), goondan::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<Arc<Grant>>);

/// A principal, its token, and its rights: by default all, in the conversations whose keys begin with
/// the name of the principal and `:`.
///
/// ```
/// use goondan_serve::{Grant, Right, Tokens};
///
/// let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
/// let support = Grant::new("support", digest)?.keys("*").rights([Right::Read, Right::Decide]);
/// let tokens = Tokens::from_iter([support]);
/// # Ok::<(), goondan::Error>(())
/// ```
#[derive(Clone)]
pub struct Grant {
    name: String,
    /// `None` where the program has a way of its own to tell who sends a request.
    token: Option<[u8; 32]>,
    /// `None` for all that are served.
    agents: Option<Vec<AgentName>>,
    keys: Keys,
    rights: Vec<Right>,
}

/// Something that a principal may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Right {
    /// To run turns, and to cancel them.
    Turn,
    /// To see conversations.
    Read,
    /// To answer questions.
    Decide,
    /// To delete conversations.
    Delete,
}

/// The keys of conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Keys {
    One(String),
    BeginningWith(String),
}

impl Right {
    /// All rights.
    pub const ALL: [Self; 4] = [Self::Turn, Self::Read, Self::Decide, Self::Delete];

    /// Returns the right as bundles write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Read => "read",
            Self::Decide => "decide",
            Self::Delete => "delete",
        }
    }
}

impl Grant {
    /// Everything, for the principal `name` with the token whose SHA-256 has these hexadecimal digits.
    ///
    /// # Errors
    /// `E_SERVE_TOKENS` when the name has other characters than letters, digits, `-`, `_`, `.` and `@`, or the digest
    /// is none.
    pub fn new(name: &str, token_sha256: &str) -> Result<Self> {
        let token = bytes(token_sha256).ok_or_else(|| refuse("the digest of a token has 64 hexadecimal digits"))?;
        Ok(Self { token: Some(token), ..Self::of(name)? })
    }

    /// Everything, for the principal `name`, where the program itself tells who sends a request: a layer around
    /// [`Service::router`](crate::Service::router) inserts the grant into the extensions of the request.
    ///
    /// ```
    /// use axum::extract::Request;
    /// use axum::middleware::{Next, from_fn};
    /// use axum::response::{IntoResponse, Response};
    /// use axum::{Router, http::StatusCode};
    /// use goondan_serve::{Grant, Service};
    ///
    /// /// Takes the user that the proxy in front has signed in.
    /// async fn signed_in(mut request: Request, next: Next) -> Response {
    ///     let user = request.headers().get("x-user").and_then(|user| user.to_str().ok());
    ///     let Some(Ok(grant)) = user.map(Grant::of) else { return StatusCode::UNAUTHORIZED.into_response() };
    ///     request.extensions_mut().insert(grant);
    ///     next.run(request).await
    /// }
    ///
    /// fn app(service: &Service) -> Router {
    ///     Router::new().nest("/api", service.router().layer(from_fn(signed_in)))
    /// }
    /// ```
    ///
    /// # Errors
    /// `E_SERVE_TOKENS` when the name has other characters than letters, digits, `-`, `_`, `.` and `@`.
    pub fn of(name: &str) -> Result<Self> {
        if !is_name(name) {
            return Err(refuse(&format!("`{name}` is no name of a principal")));
        }
        let keys = Keys::BeginningWith(format!("{name}:"));
        Ok(Self { name: name.to_owned(), token: None, agents: None, keys, rights: Right::ALL.to_vec() })
    }

    /// Allows these agents alone.
    #[must_use]
    pub fn agents(self, agents: impl IntoIterator<Item = AgentName>) -> Self {
        Self { agents: Some(agents.into_iter().collect()), ..self }
    }

    /// Allows the conversations with these keys alone. `*` at the end stands for anything, and `{principal}` for the
    /// name.
    #[must_use]
    pub fn keys(self, pattern: &str) -> Self {
        let pattern = pattern.replace("{principal}", &self.name);
        let keys = match pattern.strip_suffix('*') {
            Some(beginning) => Keys::BeginningWith(beginning.to_owned()),
            None => Keys::One(pattern),
        };
        Self { keys, ..self }
    }

    /// Gives these rights alone.
    #[must_use]
    pub fn rights(self, rights: impl IntoIterator<Item = Right>) -> Self {
        Self { rights: rights.into_iter().collect(), ..self }
    }

    /// Returns the name of the principal.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn may(&self, right: Right) -> bool {
        self.rights.contains(&right)
    }

    pub(crate) fn has_agent(&self, agent: &AgentName) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.contains(agent))
    }

    pub(crate) fn has_key(&self, key: &str) -> bool {
        match &self.keys {
            Keys::One(one) => one == key,
            Keys::BeginningWith(beginning) => key.starts_with(beginning),
        }
    }

    /// Returns the prefix of the keys.
    pub(crate) fn beginning(&self) -> &str {
        let (Keys::One(beginning) | Keys::BeginningWith(beginning)) = &self.keys;
        beginning
    }

    /// Returns the key of the conversation that a front end calls `id`.
    pub(crate) fn key_of(&self, id: &str) -> String {
        match &self.keys {
            Keys::One(_) => id.to_owned(),
            Keys::BeginningWith(beginning) => format!("{beginning}{id}"),
        }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("name", &self.name).field("rights", &self.rights).finish_non_exhaustive()
    }
}

impl FromIterator<Grant> for Tokens {
    fn from_iter<I: IntoIterator<Item = Grant>>(grants: I) -> Self {
        Self(grants.into_iter().map(Arc::new).collect())
    }
}

impl Extend<Grant> for Tokens {
    fn extend<I: IntoIterator<Item = Grant>>(&mut self, grants: I) {
        self.0.extend(grants.into_iter().map(Arc::new));
    }
}

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
        let mut tokens = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let grant = line.split_once(':').map(|(name, digest)| Grant::new(name.trim(), digest.trim()));
            match grant {
                Some(Ok(grant)) => tokens.extend([grant]),
                _ => return Err(refuse(&format!("line {number} of the tokens is no name and digest"))),
            }
        }
        if tokens.is_empty() { Err(refuse("there are no tokens")) } else { Ok(tokens) }
    }

    /// Returns whether no token is accepted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rights of a token, if it is accepted. It takes as long for every token.
    pub fn grant(&self, token: &str) -> Option<&Arc<Grant>> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let mut found = None;
        for grant in &self.0 {
            let pairs = grant.token.iter().flatten().zip(&digest);
            let difference = pairs.fold(0, |difference, (known, byte)| difference | (known ^ byte));
            if difference == 0 && grant.token.is_some() {
                found = Some(grant);
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
