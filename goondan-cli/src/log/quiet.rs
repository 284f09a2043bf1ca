//! Log lines of code that a server on the other side can make write: few, and only when they are asked for.

use std::time::{Duration, Instant};

use goondan_lock::Lock;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::Context;

/// The crate that speaks to MCP servers. Each message that it does not expect is a line.
const CRATE: &str = "rmcp";
/// The most lines of it in a second.
const MOST: u32 = 20;

/// Returns the filter without the lines of the crate, unless it names the crate, or has lines of the level debug.
pub(super) fn without_foreign(filter: Targets) -> Targets {
    let names_it = filter.iter().any(|(target, _)| is_foreign(target));
    if names_it || filter.would_enable(CRATE, &tracing::Level::DEBUG) {
        filter
    } else {
        filter.with_target(CRATE, LevelFilter::OFF)
    }
}

fn is_foreign(target: &str) -> bool {
    target.strip_prefix(CRATE).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Drops lines of the crate when there are too many in a second.
#[derive(Debug, Default)]
pub(super) struct Limited(Lock<Second>);

/// The lines since `start`.
#[derive(Debug, Default)]
struct Second {
    start: Option<Instant>,
    lines: u32,
}

impl Second {
    /// Counts a line, and returns whether it is written.
    fn admits(&mut self, now: Instant) -> bool {
        if self.start.is_none_or(|start| now.duration_since(start) >= Duration::from_secs(1)) {
            *self = Self { start: Some(now), lines: 0 };
        }
        self.lines = self.lines.saturating_add(1);
        self.lines <= MOST
    }
}

impl<S: Subscriber> Layer<S> for Limited {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_foreign(metadata.target()) { Interest::sometimes() } else { Interest::always() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        !is_foreign(metadata.target()) || self.0.lock().admits(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn filter(text: &str) -> Targets {
        without_foreign(text.parse().unwrap_or_default())
    }

    #[test]
    fn its_lines_are_written_when_they_are_asked_for() {
        let target = "rmcp::service";
        for quiet in ["goondan::extension=info,warn", "error", "info", "off", "mcp=trace,info"] {
            assert!(!filter(quiet).would_enable(target, &Level::ERROR), "{quiet}");
        }
        for loud in ["debug", "trace", "warn,rmcp=warn", "warn,rmcp::service=warn"] {
            assert!(filter(loud).would_enable(target, &Level::WARN), "{loud}");
        }
        assert!(filter("info").would_enable("mcp::connection", &Level::INFO));
    }

    #[test]
    fn a_second_has_a_number_of_lines() {
        let (mut second, start) = (Second::default(), Instant::now());
        let admitted = |second: &mut Second, now| (0..1000).filter(|_| second.admits(now)).count();
        assert_eq!(admitted(&mut second, start), 20);
        assert_eq!(admitted(&mut second, start + Duration::from_millis(999)), 0);
        assert_eq!(admitted(&mut second, start + Duration::from_millis(1000)), 20);
    }
}
