//! The errors of the extension. Its README has a line for each code.

use std::error::Error as StdError;
use std::fmt;

use goondan::Error;

/// The request cannot be sent as it is.
pub(crate) const REQUEST: &str = "E_HTTP_REQUEST";
/// The host has no public address.
pub(crate) const ADDRESS: &str = "E_HTTP_ADDRESS";
/// There was no answer.
pub(crate) const FAILED: &str = "E_HTTP_FAILED";
/// The answer is in an encoding.
pub(crate) const ENCODING: &str = "E_HTTP_ENCODING";
/// The answer took too long.
pub(crate) const TIMEOUT: &str = "E_HTTP_TIMEOUT";

/// The host has no public address.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` has no public address, and others are refused", self.0)
    }
}

impl StdError for Refused {}

impl Refused {
    /// Returns the error for the model.
    pub(crate) fn error(&self) -> Error {
        Error::new(ADDRESS, self.to_string()).suggest("use another host; `allowHosts` in the config allows one")
    }
}

/// Returns the error for a request without an answer.
pub(crate) fn failed(error: &reqwest::Error) -> Error {
    let mut message = "there was no answer".to_owned();
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return refused.error();
        }
        message = format!("{message}: {error}");
        cause = error.source();
    }
    Error::new(FAILED, message).suggest("check the URL, or try again later")
}
