//! Owns the one error type: a stable code, a message, a remedy, and where it happened.

mod wire;

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

pub use wire::WireError;

use crate::name::ExtensionName;
use crate::outcome::FailedTurn;
use crate::secret::{mask, masked};

/// The result of everything that can fail in goondan.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure with a stable [`ErrorCode`], a message that names the thing, and where it is known a suggestion, a help
/// page, the extension and the hook that failed, and the cause (ERR-01, ERR-06, ERR-07).
///
/// Any standard error becomes one through `?`, with the code `E_EXT_RUNTIME` (D-10). For that reason this type does not
/// implement [`std::error::Error`] itself; [`Error::into_std`] gives a value that does.
///
/// What it says holds no [`Secret`](crate::Secret); only [`source`](Error::source) gives the cause as it is.
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
pub struct Error(Box<Parts>);

/// What an error is made of.
pub(crate) struct Parts {
    pub(crate) code: ErrorCode,
    /// `None` when the error is exactly its source.
    pub(crate) message: Option<Cow<'static, str>>,
    pub(crate) suggestion: Option<Cow<'static, str>>,
    pub(crate) extension: Option<ExtensionName>,
    pub(crate) hook: Option<Cow<'static, str>>,
    pub(crate) turn: Option<FailedTurn>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) retryable: bool,
    pub(crate) source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error with a code of the caller's choice.
    pub fn new(code: impl Into<ErrorCode>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::build(code.into(), Some(masked(message.into())), None)
    }

    /// An error of an extension that needs no code of its own: `E_EXT_RUNTIME` (D-10).
    pub fn msg(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::EXT_RUNTIME, message)
    }

    /// Asks the runtime to run the step, or the tool call, again after `delay`, as a new step or call (PIPE-19).
    pub fn retry_after(delay: Duration, message: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::msg(message);
        error.0.retry_after = Some(delay);
        error.0.retryable = true;
        error
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
            source,
        }))
    }

    /// The error that `parts` make, after they came from another binary.
    pub(crate) fn from_parts(parts: Parts) -> Self {
        Self(Box::new(parts))
    }

    /// What the error is made of, on its way to another binary.
    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }

    /// Adds what the reader can do about it.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<Cow<'static, str>>) -> Self {
        self.0.suggestion = Some(masked(suggestion.into()));
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Says whether the same request may succeed later, as after a rate limit. A middleware may answer with
    /// [`Error::retry_after`]; the runtime does not retry by itself.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    /// Names the extension and the hook that failed, unless an inner layer did so already.
    #[must_use]
    pub(crate) fn at(mut self, extension: &ExtensionName, hook: impl Into<Cow<'static, str>>) -> Self {
        if self.0.extension.is_none() {
            self.0.extension = Some(extension.clone());
            self.0.hook = Some(hook.into());
        }
        self
    }

    /// Names the turn that failed.
    #[cfg(feature = "runtime")]
    #[must_use]
    pub(crate) fn in_turn(mut self, turn: FailedTurn) -> Self {
        self.0.turn = Some(turn);
        self
    }

    /// The stable code, such as `E_EXT_INIT`.
    pub fn code(&self) -> &ErrorCode {
        &self.0.code
    }

    /// What went wrong, without the place and the causes.
    pub fn message(&self) -> Cow<'_, str> {
        match (&self.0.message, &self.0.source) {
            (Some(message), _) => Cow::Borrowed(message),
            (None, Some(source)) => Cow::Owned(mask(&source.to_string()).into_owned()),
            (None, None) => Cow::Borrowed(self.0.code.as_str()),
        }
    }

    /// What the reader can do about it.
    pub fn suggestion(&self) -> Option<&str> {
        self.0.suggestion.as_deref()
    }

    /// The page that explains the code; `None` for codes that an extension made up.
    pub fn help_url(&self) -> Option<String> {
        self.0.code.help_url()
    }

    /// The extension whose code failed.
    pub fn extension(&self) -> Option<&ExtensionName> {
        self.0.extension.as_ref()
    }

    /// The hook of the extension that failed, such as ``step middleware `trim` ``.
    pub fn hook(&self) -> Option<&str> {
        self.0.hook.as_deref()
    }

    /// The turn that failed with this error, as far as it came.
    pub fn turn(&self) -> Option<&FailedTurn> {
        self.0.turn.as_ref()
    }

    /// The delay after which the step or call should be run again, if the error asks for that.
    pub fn retry_delay(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// The cause.
    pub fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source: &(dyn StdError + 'static) = self.0.source.as_deref()?;
        // An error that is exactly its source must not name it twice.
        if self.0.message.is_none() { source.source() } else { Some(source) }
    }

    /// The same error as a [`std::error::Error`], for APIs that ask for one.
    pub fn into_std(self) -> StdErr {
        StdErr(self)
    }

    /// The whole story on several lines: code, message, causes, remedy, help page.
    pub fn report(&self) -> impl fmt::Display + '_ {
        Report(self)
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

struct Report<'a>(&'a Error);

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.0;
        write!(f, "{}: {error}", error.code())?;
        let mut cause = error.source();
        while let Some(error) = cause {
            write!(f, "\n  caused by: {}", mask(&error.to_string()))?;
            cause = error.source();
        }
        if let Some(suggestion) = error.suggestion() {
            write!(f, "\n  help: {suggestion}")?;
        }
        if let Some(url) = error.help_url() {
            write!(f, "\n  see: {url}")?;
        }
        Ok(())
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self::build(ErrorCode::EXT_RUNTIME, None, Some(Box::new(error)))
    }
}

/// [`Error`] as a [`std::error::Error`]; made by [`Error::into_std`].
pub struct StdErr(Error);

impl StdErr {
    /// The error that it was made from.
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

/// The stable name of a kind of failure. Codes of goondan are constants of this type; extensions may use their own.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(Cow<'static, str>);

/// Declares the codes once: the constant, its name, and the list that documentation and tests go through.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl ErrorCode {
            $($(#[$doc])* pub const $name: Self = Self(Cow::Borrowed($code));)*

            /// Every code that goondan itself gives, in the order of `docs/errors.md`.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

codes! {
    /// An extension could not be found or its entry could not be loaded (ERR-02).
    EXT_LOAD = "E_EXT_LOAD";
    /// The initializer of an extension failed (ERR-03).
    EXT_INIT = "E_EXT_INIT";
    /// The config of an extension does not fit its schema (ERR-04).
    EXT_CONFIG = "E_EXT_CONFIG";
    /// An extension was made for another version of the contract, or needs something that this host does not offer (ERR-05,
    /// COMPAT-02).
    EXT_COMPAT = "E_EXT_COMPAT";
    /// Code of an extension failed with an error that has no code of its own (D-10).
    EXT_RUNTIME = "E_EXT_RUNTIME";
    /// Code of an extension panicked (D-10).
    EXT_PANIC = "E_EXT_PANIC";
    /// A name of an extension breaks the grammar.
    EXT_NAME = "E_EXT_NAME";
    /// A middleware gave a result without running `next` exactly once (NEXT-01, NEXT-03).
    EXT_NEXT = "E_EXT_NEXT";
    /// The middlewares of an agent cannot be ordered: constraints contradict one another, or name an extension that is not
    /// there (ORDER-11).
    EXT_ORDER = "E_EXT_ORDER";
    /// A tool name breaks the grammar (TOOL-01).
    TOOL_NAME = "E_TOOL_NAME";
    /// The model called a tool that this step did not show it (F-TOOL).
    TOOL_NOT_IN_CATALOG = "E_TOOL_NOT_IN_CATALOG";
    /// A tool of the catalog has no handler (F-TOOL).
    TOOL_NOT_FOUND = "E_TOOL_NOT_FOUND";
    /// The model called a tool with arguments that do not fit its schema (F-TOOL).
    TOOL_INVALID_ARGS = "E_TOOL_INVALID_ARGS";
    /// A tool did not answer in time (TIME-01).
    TOOL_TIMEOUT = "E_TOOL_TIMEOUT";
    /// A JSON Schema, of a tool or a config, is not one.
    SCHEMA_INVALID = "E_SCHEMA_INVALID";
    /// The turn ended before the call could be answered (D-16).
    TOOL_INTERRUPTED = "E_TOOL_INTERRUPTED";
    /// A call that must not run twice had started when the turn ended, and its outcome is not known (EFFECT-01).
    TOOL_OUTCOME_UNKNOWN = "E_TOOL_OUTCOME_UNKNOWN";
    /// The model could not be reached, or refused, or answered with something that is no answer.
    MODEL = "E_MODEL";
    /// The model did not answer in time (TIME-01).
    MODEL_TIMEOUT = "E_MODEL_TIMEOUT";
    /// A middleware asked for a model that the agent does not have.
    MODEL_NOT_FOUND = "E_MODEL_NOT_FOUND";
    /// A turn did not end in time (TIME-01).
    TURN_TIMEOUT = "E_TURN_TIMEOUT";
    /// No unused item of a scripted model fits the request.
    MODEL_SCRIPT = "E_MODEL_SCRIPT";
    /// A message with an id that the conversation holds already was appended (D-20).
    MESSAGE_DUPLICATE_ID = "E_MESSAGE_DUPLICATE_ID";
    /// An event aims at a message that the conversation does not hold (F-CONV). A warning: the turn goes on.
    MESSAGE_TARGET_NOT_FOUND = "E_MESSAGE_TARGET_NOT_FOUND";
    /// A file of an instance could not be read or written.
    STORE_IO = "E_STORE_IO";
    /// A file of an instance is damaged at a place that opening cannot repair.
    STORE_DAMAGED = "E_STORE_DAMAGED";
    /// Another process has the instance open.
    STORE_LOCKED = "E_STORE_LOCKED";
    /// There is no instance of that name.
    STORE_NOT_FOUND = "E_STORE_NOT_FOUND";
    /// There is an instance of that name already.
    STORE_EXISTS = "E_STORE_EXISTS";
    /// The instance was closed.
    INSTANCE_CLOSED = "E_INSTANCE_CLOSED";
    /// The stored state of an extension cannot be read (STATE-05).
    EXT_STATE = "E_EXT_STATE";
    /// A name or a pattern of bus events breaks the grammar.
    EVENT_NAME = "E_EVENT_NAME";
    /// Another agent did not answer in time (AGENTS-04).
    AGENT_REQUEST_TIMEOUT = "AGENT_REQUEST_TIMEOUT";
    /// There is no agent of that name (F-AGENTS).
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND";
    /// Agents called one another in a circle (AGENTS-05).
    CIRCULAR_CALL_DETECTED = "CIRCULAR_CALL_DETECTED";
    /// An input event is not something that can be handled.
    INPUT = "E_INPUT";
    /// The command line, or what stands around it, is not right.
    USAGE = "E_USAGE";
    /// A file or directory could not be read or written, by a command.
    IO = "E_IO";
    /// A bundle cannot be read, or is not YAML (F-REF).
    CONFIG_PARSE = "E_CONFIG_PARSE_ERROR";
    /// A document has a missing or foreign `apiVersion` (F-REF).
    CONFIG_API_VERSION = "E_CONFIG_UNSUPPORTED_API_VERSION";
    /// A document has an unknown `kind` (F-REF).
    CONFIG_KIND = "E_CONFIG_UNKNOWN_KIND";
    /// A name of a resource, or of an instance, breaks the grammar (F-REF).
    CONFIG_NAME = "E_CONFIG_INVALID_NAME";
    /// Two resources of a kind have the same name (F-REF).
    CONFIG_DUPLICATE_NAME = "E_CONFIG_DUPLICATE_NAME";
    /// A reference is not of the form `Kind/name` (F-REF).
    CONFIG_INVALID_REF = "E_CONFIG_INVALID_REF";
    /// A reference aims at a resource that the bundle does not hold (F-REF).
    CONFIG_REF_NOT_FOUND = "E_CONFIG_REF_NOT_FOUND";
    /// A document does not fit the schema of its kind (F-REF).
    CONFIG_SCHEMA = "E_CONFIG_SCHEMA_INVALID";
    /// A file that a document names does not exist (F-REF).
    CONFIG_ENTRY_NOT_FOUND = "E_CONFIG_ENTRY_NOT_FOUND";
    /// A value that a document takes from elsewhere is not there (F-REF).
    CONFIG_VALUE_NOT_FOUND = "E_CONFIG_VALUE_NOT_FOUND";
}

impl ErrorCode {
    /// The code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The page that explains the code; `None` for codes that goondan does not know.
    pub fn help_url(&self) -> Option<String> {
        Self::ALL.contains(self).then(|| {
            format!("{}/blob/main/docs/errors.md#{}", env!("CARGO_PKG_REPOSITORY"), self.0.to_ascii_lowercase())
        })
    }

    /// Whether the cause lies in what was configured, not in the work.
    pub fn is_configuration(&self) -> bool {
        self.0.starts_with("E_CONFIG_")
            || [Self::USAGE, Self::EXT_LOAD, Self::EXT_CONFIG, Self::EXT_COMPAT, Self::EXT_NAME, Self::EXT_ORDER]
                .contains(self)
    }
}

impl From<&'static str> for ErrorCode {
    fn from(code: &'static str) -> Self {
        Self(Cow::Borrowed(code))
    }
}

impl From<String> for ErrorCode {
    fn from(code: String) -> Self {
        Self(Cow::Owned(code))
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
