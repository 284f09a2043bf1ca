//! The error type of goondan: a stable code, a message, a remedy, and where the failure happened.

mod wire;

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
pub use wire::WireError;

use crate::name::ExtensionName;
use crate::outcome::FailedTurn;
use crate::panic::{catch, drop_guarded};
use crate::secret::{mask, mask_cow, mask_text};

/// The result of every operation of goondan that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure: a stable [`ErrorCode`], a message that names the thing that failed and, where they are known, a
/// suggestion, a help page, the extension and the hook that failed, and the cause.
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
    pub(crate) hook: Option<Cow<'static, str>>,
    pub(crate) turn: Option<FailedTurn>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) retryable: bool,
    /// Empty in most errors, and then without an allocation.
    pub(crate) details: Map<String, Value>,
    pub(crate) source: Option<Box<dyn StdError + Send + Sync>>,
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

    /// Returns the error for code of an extension that panicked with the message `text`.
    pub(crate) fn panicked(text: &str) -> Self {
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
            hook: None,
            turn: None,
            retry_after: None,
            retryable: false,
            details: Map::new(),
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

    /// Adds a remedy: what the reader of the message can do.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<Cow<'static, str>>) -> Self {
        self.0.suggestion = Some(mask_cow(suggestion.into()));
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
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

    /// Sets the extension and the hook that failed, unless an inner layer has set them already.
    #[must_use]
    pub(crate) fn at(mut self, extension: &ExtensionName, hook: impl Into<Cow<'static, str>>) -> Self {
        if self.0.extension.is_none() {
            self.0.extension = Some(extension.clone());
            self.0.hook = Some(hook.into());
        }
        self
    }

    /// Sets the turn that failed.
    #[cfg(feature = "runtime")]
    #[must_use]
    pub(crate) fn in_turn(mut self, turn: FailedTurn) -> Self {
        self.0.turn = Some(turn);
        self
    }

    /// Returns the stable code, such as `E_EXT_INIT`.
    pub fn code(&self) -> &ErrorCode {
        &self.0.code
    }

    /// Returns what went wrong, without the extension, the hook and the causes.
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

    /// Returns the hook that failed: which function of the extension, such as ``step middleware `trim` ``.
    pub fn hook(&self) -> Option<&str> {
        self.0.hook.as_deref()
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
        // The message of an error that only wraps its source is that of the source already.
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
            if let Some(hook) = &self.0.hook {
                write!(f, ", {hook}")?;
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

/// The stable name of a kind of failure. The codes of goondan are constants of this type; extensions may define their
/// own. A [`Secret`](crate::Secret) in a code is masked.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ErrorCode(Cow<'static, str>);

/// Declares each code once: the constant, its text, and its entry in the list that documentation and tests iterate.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl ErrorCode {
            $($(#[$doc])* pub const $name: Self = Self(Cow::Borrowed($code));)*

            /// Every code that goondan itself uses, in the order of `docs/errors.md`.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

codes! {
    /// An extension was not found, or its entry could not be loaded.
    EXT_LOAD = "E_EXT_LOAD";
    /// The initializer of an extension failed.
    EXT_INIT = "E_EXT_INIT";
    /// The config of an extension does not match its schema.
    EXT_CONFIG = "E_EXT_CONFIG";
    /// An extension was built for another version of the contract, or needs a feature that this host does not have.
    EXT_COMPAT = "E_EXT_COMPAT";
    /// Code of an extension returned an error without a more specific code.
    // D-10
    EXT_RUNTIME = "E_EXT_RUNTIME";
    /// Code of an extension panicked.
    // D-10
    EXT_PANIC = "E_EXT_PANIC";
    /// A name of an extension breaks the grammar.
    EXT_NAME = "E_EXT_NAME";
    /// A middleware returned a result without running `next` exactly once.
    // NEXT-01, NEXT-03
    EXT_NEXT = "E_EXT_NEXT";
    /// The middlewares of an agent cannot be ordered: constraints contradict one another, or name an extension that the
    /// agent does not have.
    EXT_ORDER = "E_EXT_ORDER";
    /// A tool name breaks the grammar.
    TOOL_NAME = "E_TOOL_NAME";
    /// The model called a tool that is not in the catalog of the step.
    // F-TOOL
    TOOL_NOT_IN_CATALOG = "E_TOOL_NOT_IN_CATALOG";
    /// A tool of the catalog has no handler.
    // F-TOOL
    TOOL_NOT_FOUND = "E_TOOL_NOT_FOUND";
    /// The model called a tool with arguments that do not match its schema.
    // F-TOOL
    TOOL_INVALID_ARGS = "E_TOOL_INVALID_ARGS";
    /// A tool did not answer in time.
    TOOL_TIMEOUT = "E_TOOL_TIMEOUT";
    /// A tool said that it failed.
    TOOL_FAILED = "E_TOOL_FAILED";
    /// The schema of a tool or of a config is not a JSON Schema.
    SCHEMA_INVALID = "E_SCHEMA_INVALID";
    /// The turn ended before the tool call was answered.
    // D-16
    TOOL_INTERRUPTED = "E_TOOL_INTERRUPTED";
    /// A tool call that must not run twice had started when the turn ended, and its outcome is unknown.
    TOOL_OUTCOME_UNKNOWN = "E_TOOL_OUTCOME_UNKNOWN";
    /// A file of an input or of a tool cannot be read, or is too large.
    INPUT_FILE = "E_INPUT_FILE";
    /// The model returned an error without a more specific code.
    MODEL = "E_MODEL";
    /// The provider of a model refused the key, or none was given.
    MODEL_AUTH = "E_MODEL_AUTH";
    /// The account at the provider of a model has no credit left.
    MODEL_QUOTA = "E_MODEL_QUOTA";
    /// The provider of a model limits how many requests or tokens it takes.
    MODEL_RATE_LIMIT = "E_MODEL_RATE_LIMIT";
    /// The provider of a model failed, or has too much to do.
    MODEL_OVERLOADED = "E_MODEL_OVERLOADED";
    /// The provider of a model could not be reached, or the connection broke.
    MODEL_NETWORK = "E_MODEL_NETWORK";
    /// The provider of a model refused a request.
    MODEL_REQUEST = "E_MODEL_REQUEST";
    /// The provider of a model sent something that is not an answer.
    MODEL_ANSWER = "E_MODEL_ANSWER";
    /// The model did not answer in time.
    MODEL_TIMEOUT = "E_MODEL_TIMEOUT";
    /// The model refused to answer, or its provider withheld the answer.
    MODEL_REFUSED = "E_MODEL_REFUSED";
    /// The conversation does not fit into the context window of the model.
    MODEL_CONTEXT_OVERFLOW = "E_MODEL_CONTEXT_OVERFLOW";
    /// An option of a model call has the wrong type, or the model's provider cannot do what it says.
    MODEL_OPTION = "E_MODEL_OPTION";
    /// A middleware selected a model that the agent does not have.
    MODEL_NOT_FOUND = "E_MODEL_NOT_FOUND";
    /// A provider of models does not work: it panics, no config fits its schema, or another one has its name.
    MODEL_PROVIDER = "E_MODEL_PROVIDER";
    /// The file that a model's requests are recorded in cannot be written.
    MODEL_RECORD = "E_MODEL_RECORD";
    /// A turn did not end in time.
    TURN_TIMEOUT = "E_TURN_TIMEOUT";
    /// No unused item of a scripted model matches the request.
    MODEL_SCRIPT = "E_MODEL_SCRIPT";
    /// A message was appended whose id is already in the conversation.
    // D-20
    MESSAGE_DUPLICATE_ID = "E_MESSAGE_DUPLICATE_ID";
    /// An extension emitted a part that only a model can make.
    MESSAGE_PART = "E_MESSAGE_PART";
    /// The target of a message event is not in the conversation. This is a warning: the turn continues.
    // F-CONV
    MESSAGE_TARGET_NOT_FOUND = "E_MESSAGE_TARGET_NOT_FOUND";
    /// A file of an instance could not be read or written.
    STORE_IO = "E_STORE_IO";
    /// A file of an instance is damaged in a way that opening the instance cannot repair.
    STORE_DAMAGED = "E_STORE_DAMAGED";
    /// Another process has the instance open.
    STORE_LOCKED = "E_STORE_LOCKED";
    /// The lock of an open instance was removed or replaced, so that another process may have the instance open.
    STORE_LOST = "E_STORE_LOST";
    /// No instance has that name.
    STORE_NOT_FOUND = "E_STORE_NOT_FOUND";
    /// An instance of that name exists already.
    STORE_EXISTS = "E_STORE_EXISTS";
    /// The instance was closed.
    INSTANCE_CLOSED = "E_INSTANCE_CLOSED";
    /// The stored state of an extension cannot be read.
    EXT_STATE = "E_EXT_STATE";
    /// A name or a pattern of bus events breaks the grammar.
    EVENT_NAME = "E_EVENT_NAME";
    /// Handlers of bus events emit events without an end.
    EVENT_LOOP = "E_EVENT_LOOP";
    /// A value is nested too deeply.
    VALUE_DEPTH = "E_VALUE_DEPTH";
    /// Another agent did not answer in time.
    AGENT_REQUEST_TIMEOUT = "AGENT_REQUEST_TIMEOUT";
    /// No agent has that name.
    // F-AGENTS
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND";
    /// Agents called one another in a circle.
    CIRCULAR_CALL_DETECTED = "CIRCULAR_CALL_DETECTED";
    /// An input event cannot be handled.
    INPUT = "E_INPUT";
    /// The command line, or something that it depends on, is wrong.
    USAGE = "E_USAGE";
    /// A command could not read or write a file or directory.
    IO = "E_IO";
    // F-REF: all codes of bundles.
    /// A bundle cannot be read, or is not YAML.
    CONFIG_PARSE = "E_CONFIG_PARSE_ERROR";
    /// A document has a missing or unknown `apiVersion`.
    CONFIG_API_VERSION = "E_CONFIG_UNSUPPORTED_API_VERSION";
    /// A document has an unknown `kind`.
    CONFIG_KIND = "E_CONFIG_UNKNOWN_KIND";
    /// A name of a resource, or of an instance, breaks the grammar.
    CONFIG_NAME = "E_CONFIG_INVALID_NAME";
    /// Two resources of one kind have the same name.
    CONFIG_DUPLICATE_NAME = "E_CONFIG_DUPLICATE_NAME";
    /// A reference is not of the form `Kind/name`.
    CONFIG_INVALID_REF = "E_CONFIG_INVALID_REF";
    /// A reference names a resource that is not in the bundle.
    CONFIG_REF_NOT_FOUND = "E_CONFIG_REF_NOT_FOUND";
    /// A document does not match the schema of its kind.
    CONFIG_SCHEMA = "E_CONFIG_SCHEMA_INVALID";
    /// A file that a document names does not exist.
    CONFIG_ENTRY_NOT_FOUND = "E_CONFIG_ENTRY_NOT_FOUND";
    /// A value that a document takes from another source does not exist.
    CONFIG_VALUE_NOT_FOUND = "E_CONFIG_VALUE_NOT_FOUND";
}

impl ErrorCode {
    /// Returns the code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the address of the page that explains the code; `None` for codes that goondan does not define.
    pub fn help_url(&self) -> Option<String> {
        // The module `goondan::errors` of this version, whose page has a heading for each code.
        const PAGE: &str = concat!("https://docs.rs/goondan/", env!("CARGO_PKG_VERSION"), "/goondan/errors/index.html");
        Self::ALL.contains(self).then(|| format!("{PAGE}#{}", self.0.to_ascii_lowercase()))
    }

    /// Returns whether the cause is the configuration, not something that happened at run time.
    pub fn is_configuration(&self) -> bool {
        self.0.starts_with("E_CONFIG_")
            || [Self::USAGE, Self::EXT_LOAD, Self::EXT_CONFIG, Self::EXT_COMPAT, Self::EXT_NAME, Self::EXT_ORDER]
                .contains(self)
    }
}

impl From<&'static str> for ErrorCode {
    fn from(code: &'static str) -> Self {
        Self(mask_cow(Cow::Borrowed(code)))
    }
}

impl From<String> for ErrorCode {
    fn from(code: String) -> Self {
        Self(mask_cow(Cow::Owned(code)))
    }
}

impl PartialEq<str> for ErrorCode {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
