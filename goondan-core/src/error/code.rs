//! The codes of errors.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::secret::mask_cow;

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
    /// The answer that a middleware has prepared for a step cannot be used.
    // PREP-01
    EXT_ANSWER = "E_EXT_ANSWER";
    /// The middlewares of an agent cannot be ordered: constraints contradict one another, or name an extension that the
    /// agent does not have.
    EXT_ORDER = "E_EXT_ORDER";
    /// The failures of an extension that guards are to be skipped.
    // FAIL-01
    EXT_GUARD = "E_EXT_GUARD";
    /// An agent that is asked does not have a guard that covers those who ask.
    // GUARD-01
    GUARD_GAP = "E_GUARD_GAP";
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
    /// The tool call waits for a decision.
    // ASK-01
    TOOL_WAITING = "E_TOOL_WAITING";
    /// It was decided that the tool call does not run, or another call was approved than the one that would run.
    // ASK-01
    TOOL_REJECTED = "E_TOOL_REJECTED";
    /// The handler of a tool asks a question that it must not ask.
    // ASK-04
    TOOL_ASKS = "E_TOOL_ASKS";
    /// A live question has no answer: there is no person to ask, or none came in time.
    // ASK-04
    NOT_ANSWERED = "E_NOT_ANSWERED";
    /// A decision does not fit its question.
    // ASK-02
    DECISION_INVALID = "E_DECISION_INVALID";
    /// A question was decided before.
    // ASK-02
    DECISION_TAKEN = "E_DECISION_TAKEN";
    /// A decision is about a call that does not wait.
    // ASK-02
    NOT_WAITING = "E_NOT_WAITING";
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
    /// The model reached its limit of tokens before it answered.
    // CUT-01
    MODEL_LENGTH = "E_MODEL_LENGTH";
    /// The model gave no usable answer, although it was asked again.
    // F-TURN
    MODEL_UNUSABLE = "E_MODEL_UNUSABLE";
    /// The model gave no answer that fits the schema of the value that is expected, although it was asked again.
    // VALUE-01
    ANSWER_SCHEMA = "E_ANSWER_SCHEMA";
    /// The conversation does not fit into the context window of the model.
    MODEL_CONTEXT_OVERFLOW = "E_MODEL_CONTEXT_OVERFLOW";
    /// An option of a model call has the wrong type, or the model's provider cannot follow it.
    MODEL_OPTION = "E_MODEL_OPTION";
    /// A middleware selected a model that the agent does not have.
    MODEL_NOT_FOUND = "E_MODEL_NOT_FOUND";
    /// A provider of models does not work: it panics, no config fits its schema, or another one has its name.
    MODEL_PROVIDER = "E_MODEL_PROVIDER";
    /// The file that a model's requests are recorded in cannot be written.
    MODEL_RECORD = "E_MODEL_RECORD";
    /// A request is not in the cassette that a model plays, or an exchange cannot be recorded.
    MODEL_CASSETTE = "E_MODEL_CASSETTE";
    /// A turn did not end in time.
    TURN_TIMEOUT = "E_TURN_TIMEOUT";
    /// The turn that an event started was interrupted, and closed later without an answer.
    // ONCE-01
    TURN_INTERRUPTED = "E_TURN_INTERRUPTED";
    /// A turn was cancelled.
    TURN_CANCELLED = "E_TURN_CANCELLED";
    /// The turn that an event started was taken back with the conversation.
    // BACK-01
    TURN_REWOUND = "E_TURN_REWOUND";
    /// A conversation cannot be taken back to a turn.
    // BACK-01
    REWIND = "E_REWIND";
    /// A turn was gone on with too often without coming any further.
    // RESUME-01
    TURN_RESUMED_TOO_OFTEN = "E_TURN_RESUMED_TOO_OFTEN";
    /// An event has the id of an earlier one, and another input.
    // ONCE-01
    EVENT_REUSED = "E_EVENT_REUSED";
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
    /// Another version of goondan wrote the files of an instance, in another format.
    // D-34
    STORE_VERSION = "E_STORE_VERSION";
    /// Another process has the instance open.
    STORE_LOCKED = "E_STORE_LOCKED";
    /// The lock of an open instance was removed or replaced, so that another process may have the instance open.
    STORE_LOST = "E_STORE_LOST";
    /// No instance has that name.
    STORE_NOT_FOUND = "E_STORE_NOT_FOUND";
    /// An instance of that name exists already.
    STORE_EXISTS = "E_STORE_EXISTS";
    /// The store cannot be reached now. The turn stays open, and goes on when its event is run again.
    // RESUME-01
    STORE_UNAVAILABLE = "E_STORE_UNAVAILABLE";
    /// The store cannot do this.
    STORE_UNSUPPORTED = "E_STORE_UNSUPPORTED";
    /// The instance was closed.
    INSTANCE_CLOSED = "E_INSTANCE_CLOSED";
    /// The turn of the instance waits for a decision.
    // ASK-01
    INSTANCE_SUSPENDED = "E_INSTANCE_SUSPENDED";
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
    /// The turn of another agent waits for a decision.
    // ASK-01
    AGENT_SUSPENDED = "AGENT_SUSPENDED";
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
    /// A bundle can do something that the user has not agreed to.
    // TRUST-01
    BUNDLE_TRUST = "E_BUNDLE_TRUST";
    /// A bundle is not reloaded, because agents could do something then that they cannot do now.
    // TREE-01
    RELOAD_ADDS = "E_RELOAD_ADDS";
    /// Something else in the program receives the reload requests of an agent.
    // OBSERVE-01
    RELOAD_TAKEN = "E_RELOAD_TAKEN";
    /// A request of HTTP cannot be understood, or is too large.
    SERVE_REQUEST = "E_SERVE_REQUEST";
    /// A request of HTTP has no token that is known.
    // SERVE-03
    SERVE_TOKEN = "E_SERVE_TOKEN";
    /// A page may not send a request.
    // SERVE-03
    SERVE_FORBIDDEN = "E_SERVE_FORBIDDEN";
    /// There is no such agent, conversation or turn, or the caller may not see it.
    SERVE_NOT_FOUND = "E_SERVE_NOT_FOUND";
    /// Too many turns run or are queued.
    SERVE_BUSY = "E_SERVE_BUSY";
    /// The server is ending.
    SERVE_DRAINING = "E_SERVE_DRAINING";
    /// The tokens of a server cannot be read.
    // SERVE-03
    SERVE_TOKENS = "E_SERVE_TOKENS";
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
            || [
                Self::USAGE,
                Self::BUNDLE_TRUST,
                Self::EXT_LOAD,
                Self::EXT_CONFIG,
                Self::EXT_COMPAT,
                Self::EXT_NAME,
                Self::EXT_ORDER,
                Self::SERVE_TOKENS,
            ]
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
