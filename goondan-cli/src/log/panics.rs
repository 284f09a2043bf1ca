//! Masks secrets in what a panic prints.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::{panic, thread};

use goondan::secret::mask;

use crate::output;

/// Installs a panic hook that masks secrets in the message. A panic without a secret is left to the previous hook.
pub(crate) fn mask_secrets() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let message = info.to_string();
        // `mask` returns an owned string only if it replaced something.
        let Cow::Owned(message) = mask(&message) else { return default(info) };
        let thread = thread::current();
        let trace = Backtrace::capture();
        let trace = if trace.status() == BacktraceStatus::Captured { format!("{trace}\n") } else { String::new() };
        output::eprint(&format!("\nthread '{}' {message}\n{trace}", thread.name().unwrap_or("<unnamed>")));
    }));
}
