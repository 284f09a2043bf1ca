//! The error type of goondan: a stable code, a message, a remedy, and where the failure happened.

mod code;
mod wire;

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

pub use code::ErrorCode;
use serde_json::{Map, Value};
pub use wire::WireError;

use crate::name::ExtensionName;
use crate::outcome::FailedTurn;
use crate::panic::{catch, drop_guarded};
use crate::secret::{self, Masked, mask, mask_cow, mask_text};

/// The result of every operation of goondan that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure: a stable [`ErrorCode`], a message that names the thing that failed and, where they are known, a
/// suggestion, a help page, the extension and the part that failed, and the cause.
///
/// `?` converts any [`std::error::Error`] into this type, with the code `E_EXT_RUNTIME`. For that reason this type does
/// not implement [`std::error::Error`] itself; [`Error::into_std`] returns a value that does.
///
/// Every [`Secret`](crate::Secret) in its texts is masked; only [`source`](Error::source) returns the cause unmasked.
///
/// ```
/// use goondan::{Error, ErrorCode, Result};
///
/// fn port(text: &str) -> Result<u16> {
///     if text.is_empty() {
///         return Err(Error::new("E_PORT_MISSING", "no port was given").suggest("set `port` in the config"));
///     }
///     Ok(text.parse()?)
/// }
/// assert_eq!(port("").unwrap_err().code(), "E_PORT_MISSING");
/// assert_eq!(port("x").unwrap_err().code(), &ErrorCode::EXT_RUNTIME);
/// ```
// ERR-06, D-10
pub struct Error(Box<Parts>);

/// The fields of an [`Error`], in a box that keeps a `Result` small.
pub(crate) struct Parts {
    pub(crate) code: ErrorCode,
    /// `None` when the error only wraps its source, as after `?`.
    pub(crate) message: Option<Cow<'static, str>>,
    pub(crate) suggestion: Option<Cow<'static, str>>,
    pub(crate) extension: Option<ExtensionName>,
    pub(crate) part: Option<Cow<'static, str>>,
    pub(crate) turn: Option<FailedTurn>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) retryable: bool,
    /// Empty in most errors, and then without an allocation.
    pub(crate) details: Map<String, Value>,
    pub(crate) source: Option<Box<dyn StdError + Send + Sync>>,
    /// The secrets in the texts of the source, which are masked when they are read: the error may outlive them.
    pub(crate) secrets: Masked,
}

impl Parts {
    /// Drops the cause, which is a value of the extension that the error names, or else of `owner`.
    fn drop_source(&mut self, owner: &str) {
        if let Some(mut source) = self.source.take() {
            let owner = self.extension.as_ref().map_or(owner, ExtensionName::as_str);
            if let Some(StdErr(error)) = source.downcast_mut::<StdErr>() {
                // It may not name the extension itself.
                error.0.drop_source(owner);
            }
            drop_guarded(owner, || drop(source));
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.drop_source("unknown");
    }
}

/// Returns the text of a cause. That of another [`Error`] has its code, unless the code says nothing. Causes are values
/// of extensions, whose `Display` may panic.
// ERR-06
fn text_of(cause: &(dyn StdError + 'static)) -> String {
    let text = || match cause.downcast_ref::<StdErr>() {
        Some(StdErr(error)) if *error.code() != ErrorCode::EXT_RUNTIME => format!("{}: {error}", error.code()),
        _ => cause.to_string(),
    };
    catch(text).unwrap_or_else(|text| format!("its text cannot be read: panicked: {text}"))
}

/// Returns a detail as errors keep it, unless it is a list or an object.
fn detail(name: String, value: Value) -> Option<(String, Value)> {
    match value {
        Value::Array(_) | Value::Object(_) => None,
        Value::String(mut text) => {
            mask_text(&mut text);
            Some((name, text.into()))
        }
        plain => Some((name, plain)),
    }
}

/// Returns the texts of a cause, of its own cause, and so on.
fn causes(mut cause: Option<&(dyn StdError + 'static)>) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(error) = cause {
        texts.push(text_of(error));
        cause = catch(|| error.source()).ok().flatten();
    }
    texts
}

/// Returns the secrets in the texts of a cause.
fn secrets_in(source: &(dyn StdError + 'static)) -> Masked {
    if secret::any() { Masked::within(&causes(Some(source))) } else { Masked::default() }
}

impl Error {
    /// Returns an error with any code, of goondan or of an extension.
    pub fn new(code: impl Into<ErrorCode>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::build(code.into(), Some(mask_cow(message.into())), None)
    }

    /// Returns an error without a specific code: `E_EXT_RUNTIME`.
    pub fn msg(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::EXT_RUNTIME, message)
    }

    /// Returns an error that makes the runtime run the step or the tool call again after `delay`, as a new step or
    /// call.
    // PIPE-19
    pub fn retry_after(delay: Duration, message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::msg(message);
        error.0.retry_after = Some(delay);
        error.0.retryable = true;
        error
    }

    /// Returns an error that says why a tool call does not run: `E_TOOL_REJECTED`. The model reads it.
    // ASK-01
    pub fn rejected(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::TOOL_REJECTED, reason)
            .suggest("do not ask for the same again; do without it, or ask the user what to do instead")
    }

    /// Returns the error for code of an extension that panicked with the message `text`.
    #[doc(hidden)]
    pub fn panicked(text: &str) -> Self {
        Self::new(ErrorCode::EXT_PANIC, format!("panicked: {text}"))
    }

    fn build(
        code: ErrorCode,
        message: Option<Cow<'static, str>>,
        source: Option<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self(Box::new(Parts {
            code,
            message,
            suggestion: None,
            extension: None,
            part: None,
            turn: None,
            retry_after: None,
            retryable: false,
            details: Map::new(),
            secrets: source.as_deref().map(|source| secrets_in(source)).unwrap_or_default(),
            source,
        }))
    }

    /// Builds an error from parts that another binary has sent.
    pub(crate) fn from_parts(parts: Parts) -> Self {
        Self(Box::new(parts))
    }

    /// Returns the parts, to be sent to another binary.
    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }

    /// Adds a remedy: a step that the reader of the message can take.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<Cow<'static, str>>) -> Self {
        self.0.suggestion = Some(mask_cow(suggestion.into()));
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let source = source.into();
        self.0.secrets = secrets_in(&*source);
        self.0.source = Some(source);
        self
    }

    /// Sets whether the same request may succeed later, as after a rate limit. A middleware may react by returning
    /// [`Error::retry_after`]; the runtime does not retry on its own.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    /// Adds a detail for programs and middlewares, such as the status of an HTTP response: a text, a number or a flag.
    /// Lists and objects are left out.
    ///
    /// ```
    /// use goondan::{Error, ErrorCode, json};
    ///
    /// let error = Error::new(ErrorCode::MODEL_RATE_LIMIT, "too many requests").with_detail("retryAfterMs", 2000);
    /// assert_eq!(error.details()["retryAfterMs"], json!(2000));
    /// ```
    #[must_use]
    pub fn with_detail(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.details.extend(detail(name.into(), value.into()));
        self
    }

    /// Sets the extension and the part that failed, unless an inner layer has set them already.
    #[must_use]
    #[doc(hidden)]
    pub fn at(mut self, extension: &ExtensionName, part: impl Into<Cow<'static, str>>) -> Self {
        if self.0.extension.is_none() {
            self.0.extension = Some(extension.clone());
            self.0.part = Some(part.into());
        }
        self
    }

    /// Sets the turn that failed.
    #[must_use]
    #[doc(hidden)]
    pub fn in_turn(mut self, turn: FailedTurn) -> Self {
        self.0.turn = Some(turn);
        self
    }

    /// Returns the stable code, such as `E_EXT_INIT`.
    pub fn code(&self) -> &ErrorCode {
        &self.0.code
    }

    /// Returns the message itself, without the extension, the part and the causes.
    pub fn message(&self) -> Cow<'_, str> {
        match (&self.0.message, &self.0.source) {
            (Some(message), _) => Cow::Borrowed(message),
            (None, Some(source)) => Cow::Owned(mask(&text_of(&**source)).into_owned()),
            (None, None) => Cow::Borrowed(self.0.code.as_str()),
        }
    }

    /// Returns the remedy, if any.
    pub fn suggestion(&self) -> Option<&str> {
        self.0.suggestion.as_deref()
    }

    /// Returns the address of the page that explains the code; `None` for codes that an extension defines.
    pub fn help_url(&self) -> Option<String> {
        self.0.code.help_url()
    }

    /// Returns the extension whose code failed.
    pub fn extension(&self) -> Option<&ExtensionName> {
        self.0.extension.as_ref()
    }

    /// Returns the part that failed: which function of the extension, such as ``step middleware `trim` ``.
    pub fn part(&self) -> Option<&str> {
        self.0.part.as_deref()
    }

    /// Returns the turn that failed with this error, and how far it came.
    pub fn turn(&self) -> Option<&FailedTurn> {
        self.0.turn.as_ref()
    }

    /// Returns the delay after which the step or the tool call is to run again, if the error requests it.
    pub fn retry_delay(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// Returns the details that the code of the error defines. `docs/errors.md` lists them.
    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }

    /// Returns the cause.
    pub fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source: &(dyn StdError + 'static) = self.0.source.as_deref()?;
        // The message of an error that only wraps its source is the message of the source already.
        if self.0.message.is_none() { source.source() } else { Some(source) }
    }

    /// Converts the error into a [`std::error::Error`], for APIs that require one.
    pub fn into_std(self) -> StdErr {
        StdErr(self)
    }

    /// Returns the full report on several lines: code, message, causes, remedy, help page.
    pub fn report(&self) -> Report<'_> {
        Report { error: self, page: self.help_url() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(extension) = &self.0.extension {
            write!(f, "extension `{extension}`")?;
            if let Some(part) = &self.0.part {
                write!(f, ", {part}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.report(), f)
    }
}

/// The full report of an [`Error`], made by [`Error::report`]. `Display` writes it.
#[derive(Debug)]
pub struct Report<'a> {
    error: &'a Error,
    /// Where the code is explained; `None` for codes that an extension defines.
    page: Option<String>,
}

impl Report<'_> {
    /// Names another page than [`Error::help_url`], for a program that shows the pages itself. Codes that an extension
    /// defines have no page.
    #[must_use]
    pub fn see(self, page: impl FnOnce(&ErrorCode) -> String) -> Self {
        Self { page: self.page.map(|_| page(self.error.code())), ..self }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.error;
        write!(f, "{}: {error}", error.code())?;
        for cause in causes(error.source()) {
            write!(f, "\n  caused by: {}", mask(&cause))?;
        }
        if let Some(suggestion) = error.suggestion() {
            write!(f, "\n  help: {suggestion}")?;
        }
        if let Some(page) = &self.page {
            write!(f, "\n  see: {page}")?;
        }
        Ok(())
    }
}

/// An error that `?` converts into [`Error`]: every [`std::error::Error`] that is `Send`, `Sync` and `'static`. It is
/// implemented for all of them, and not meant to be implemented by hand.
// Where `?` fails, the compiler prints the label only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `std::error::Error` that is `Send`, `Sync` and `'static`",
    label = "not a `std::error::Error`: write `.map_err(|error| Error::msg(\"what failed\").caused_by(error))`"
)]
pub trait StandardError: StdError + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<E: StdError + Send + Sync + 'static> StandardError for E {}

impl<E: StandardError> From<E> for Error {
    fn from(error: E) -> Self {
        Self::build(ErrorCode::EXT_RUNTIME, None, Some(Box::new(error)))
    }
}

/// [`Error`] as a [`std::error::Error`]; made by [`Error::into_std`].
pub struct StdErr(Error);

impl StdErr {
    /// Returns the error that this was made from.
    pub fn into_inner(self) -> Error {
        self.0
    }
}

impl fmt::Display for StdErr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for StdErr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl StdError for StdErr {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl From<Error> for Box<dyn StdError + Send + Sync> {
    fn from(error: Error) -> Self {
        Box::new(error.into_std())
    }
}

impl From<Error> for Box<dyn StdError> {
    fn from(error: Error) -> Self {
        Box::new(error.into_std())
    }
}
