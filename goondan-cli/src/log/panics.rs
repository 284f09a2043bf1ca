//! Owns what a panic prints: what is usual, unless that holds a secret.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::{panic, thread};

use goondan::secret::mask;

use crate::output;

/// From now on panics tell no secrets.
pub(crate) fn hide_secrets() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        let told = panicked.to_string();
        let Cow::Owned(told) = mask(&told) else { return usual(panicked) };
        let thread = thread::current();
        let trace = Backtrace::capture();
        let trace = if trace.status() == BacktraceStatus::Captured { format!("{trace}\n") } else { String::new() };
        output::eprint(&format!("\nthread '{}' {told}\n{trace}", thread.name().unwrap_or("<unnamed>")));
    }));
}
