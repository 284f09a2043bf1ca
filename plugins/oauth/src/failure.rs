//! Why there is no token.

use std::io;

use goondan::Error;
use goondan_oauth_client::{Answer, code};

use crate::app::App;

/// Why there is no token.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) suggestion: &'static str,
}

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        let suggestion = match code {
            code::APP_NOT_FOUND => "ask for one of the apps in the config of the extension `oauth`",
            code::SUBJECT_UNAVAILABLE => "ask during a turn whose input says who sent it",
            code::SCOPE_NOT_ALLOWED => "ask for less, or add the scope to the app and sign in again",
            code::TOKEN_REVOKED => "ask again, which begins a new sign-in",
            code::REFRESH_FAILED => "try again later",
            code::DEVICE_CODE_UNSUPPORTED => "use another `flow` for the app",
            _ => "correct the config of the extension `oauth`",
        };
        Self { code, message: message.into(), suggestion }
    }

    pub(crate) fn listening(app: &App, port: u16, error: &io::Error) -> Self {
        let message = format!("`{}` cannot listen on port {port} for the browser: {error}", app.name);
        Self::new(code::CONFIGURATION_ERROR, message)
    }

    pub(crate) fn answer(self) -> Answer {
        Answer::Error { code: self.code.to_owned(), message: self.message, suggestion: self.suggestion.to_owned() }
    }

    pub(crate) fn error(self) -> Error {
        Error::new(self.code, self.message).suggest(self.suggestion).retryable(self.code == code::REFRESH_FAILED)
    }
}

/// A failure to read or write the kept tokens.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(code::CONFIGURATION_ERROR, format!("tokens cannot be kept: {}", error.message()))
    }
}
