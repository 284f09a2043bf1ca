//! `goondan run` as users see it: on a terminal and on pipes, with real signals, and as the pages tell them to type it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod accept;
mod asked;
mod background;
mod coder;
mod decided;
mod goldens;
mod held;
mod markdown;
mod masked;
mod pages;
mod presented;
mod progress;
mod refused;
mod reply;
mod retried;
mod screen;
mod shown;
mod signals;
mod steered;
mod support;
mod svg;
mod talk;
mod usage;
