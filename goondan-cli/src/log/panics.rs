//! Masks secrets and cleans control characters in the text of panics.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::{panic, thread};

use goondan::secret::mask;

use crate::output::{self, clean};

/// Installs a panic hook that masks and cleans the message. One that needs neither is left to the previous hook.
pub(crate) fn install_hook() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let message = info.to_string();
        let masked = mask(&message);
        // Both return an owned string only if they replaced something.
        if let (Cow::Borrowed(_), Cow::Borrowed(_)) = (&masked, clean(&masked)) {
            return default(info);
        }
        let thread = thread::current();
        let trace = Backtrace::capture();
        let trace = if trace.status() == BacktraceStatus::Captured { format!("{trace}\n") } else { String::new() };
        output::eprint(&format!("\nthread '{}' {masked}\n{trace}", thread.name().unwrap_or("<unnamed>")));
    }));
}
