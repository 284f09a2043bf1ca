//! The YAML parser: its limits, the stack that it runs on, and its errors as diagnostics.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use goondan_core::ErrorCode;
use serde::de::DeserializeOwned;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, MessageFormatter, Options, UserMessageFormatter};

use super::Node;
use crate::diagnostic::{Diagnostic, Diagnostics, Place};

/// The limit of documents in a file (F-REF).
const MAX_DOCUMENTS: usize = 100;

/// The limit of nesting. People do not nest deeper, and the parser recurses on the stack.
const MAX_DEPTH: usize = 64;

/// The limit of values in a document; values behind aliases count once per use.
const MAX_NODES: usize = 50_000;

/// The limit of uses of one anchor (F-REF).
const MAX_ALIASES_PER_ANCHOR: usize = 10;

/// The stack for [`MAX_DEPTH`] levels. Debug builds of the parser need 45 kB per level, and the threads of an async
/// runtime have less than that for all levels.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Returns the documents of a file, each parsed or refused. After an error from which the parser can recover, the
/// documents behind it are returned as well.
pub(crate) fn documents(file: &Path, text: &str) -> Result<Vec<Result<Node, Diagnostics>>, Diagnostics> {
    parsing(file, || {
        let mut reader = text.as_bytes();
        let mut documents: Vec<_> = serde_saphyr::read_with_options::<_, Node>(&mut reader, options())
            .take(MAX_DOCUMENTS + 1)
            .map(|document| document.map_err(|error| diagnostic(ErrorCode::CONFIG_PARSE, file, &error)))
            .collect();
        if let Some(one_too_many) = documents.get_mut(MAX_DOCUMENTS) {
            let place = one_too_many.as_ref().map_or_else(|refused| refused.first().place, |node| Some(node.place));
            let message = format!("the file holds more than {MAX_DOCUMENTS} documents");
            *one_too_many = Err(Diagnostic::parse_error(file, place, message, "use fewer documents").into());
        }
        documents
    })
}

/// Returns the only document of a file, or an error with `code` if it does not fit `T`. Must run
/// [on a large stack](parsing).
pub(crate) fn one<T: DeserializeOwned>(file: &Path, text: &str, code: ErrorCode) -> Result<T, Diagnostics> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| diagnostic(code, file, &error))
}

fn options() -> Options {
    serde_saphyr::options! {
        strict_booleans: true,
        // `0755` and `1_000` are numbers for some YAML parsers only. Here they are text, which number fields refuse.
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: MAX_DEPTH,
            max_alias_expansions_per_anchor: MAX_ALIASES_PER_ANCHOR,
        },
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_documents: MAX_DOCUMENTS,
            max_recorded_anchor_events: MAX_NODES,
        },
    }
}

thread_local! {
    /// Whether the stack of this thread is large enough for the parser.
    static IS_LARGE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which parses `file` among other things, on a thread whose stack is large enough for the parser: on this
/// one if it is such a thread, so that all files of a bundle are read on one. A panic is one of the caller.
pub(crate) fn on_large_stack<T: Send>(file: &Path, work: impl FnOnce() -> T + Send) -> Result<T, Diagnostics> {
    if IS_LARGE.get() {
        return Ok(work());
    }
    let work = || {
        IS_LARGE.set(true);
        work()
    };
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().name("goondan-yaml".to_owned()).stack_size(STACK_BYTES);
        match parser.spawn_scoped(scope, work) {
            Ok(running) => running.join().or_else(|panic| resume_unwind(panic)),
            Err(error) => Err(failed(file, &format!("no thread could be started to read the file: {error}"))),
        }
    })
}

/// Runs the parser on a large stack. A panic of it is an error of the file.
pub(crate) fn parsing<T: Send>(file: &Path, parse: impl FnOnce() -> T + Send) -> Result<T, Diagnostics> {
    let parse =
        || catch_unwind(AssertUnwindSafe(parse)).map_err(|_| failed(file, "the YAML parser failed on this file"));
    on_large_stack(file, parse)?
}

fn failed(file: &Path, why: &str) -> Diagnostics {
    let suggestion = "simplify the file, or try again when memory is free";
    Diagnostic::parse_error(file, Place::START, why, suggestion).into()
}

fn diagnostic(code: ErrorCode, file: &Path, error: &Error) -> Diagnostics {
    let place = error.location().map_or(Place::START, Place::from);
    let mut cause = error.without_snippet();
    while let Error::AliasError { error, .. } = cause {
        cause = error.without_snippet();
    }
    let (message, remedy) = message_and_remedy(cause);
    Diagnostic::error(code, file, place, message, remedy).into()
}

/// Returns the message and the remedy for an error of the parser. Messages of the parser that name its options are
/// replaced.
fn message_and_remedy(error: &Error) -> (String, String) {
    let message = UserMessageFormatter.format_message(error);
    let too_deep =
        || (format!("values are nested more than {MAX_DEPTH} levels deep"), "flatten the document".to_owned());
    match error {
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => too_deep(),
        // The scanner has a separate limit for `[[[…`, without an error variant for it.
        _ if message.contains("recursion limit") => too_deep(),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::Budget {
            breach:
                BudgetBreach::Aliases { .. }
                | BudgetBreach::Anchors { .. }
                | BudgetBreach::AliasAnchorRatio { .. }
                | BudgetBreach::RecordedAnchorEvents { .. }
                | BudgetBreach::RecordedAnchorBytes { .. }
                | BudgetBreach::MergeKeys { .. },
            ..
        } => (
            format!(
                "aliases repeat too much: an anchor may be used {MAX_ALIASES_PER_ANCHOR} times, \
                 and all aliases together may expand to {MAX_NODES} values"
            ),
            "write the values out instead of repeating anchors".to_owned(),
        ),
        Error::Budget { .. } => (
            format!("the document holds more than {MAX_NODES} values"),
            "keep large data in files that the bundle names".to_owned(),
        ),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("the key `{key}` is written twice"), format!("keep one `{key}`"))
        }
        Error::UnknownAnchor { .. } => (
            "the alias refers to an anchor that this document does not define".to_owned(),
            "define it with `&name`, or quote the text".to_owned(),
        ),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            ("an anchor holds an alias of itself".to_owned(), "write the value out".to_owned())
        }
        Error::UnsupportedTag { tag, .. } => {
            (format!("the tag `{tag}` means nothing here"), "remove the tag, or quote the text".to_owned())
        }
        Error::NullIntoString { .. } => {
            ("a key is empty, but must be text".to_owned(), "give the key a name".to_owned())
        }
        _ => (message.into_owned(), "correct the YAML at this place".to_owned()),
    }
}
