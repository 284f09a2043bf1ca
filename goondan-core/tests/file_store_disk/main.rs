//! CRASH-01, through the seam to the disk: agents run several turns while `recorder` records each disk operation.
//! From this record, `image` computes every state (an image) that a crash of the process or of the machine could
//! leave on the disk, and `crashes` opens each one and checks it.
#![cfg(feature = "runtime")]
// clippy.toml allows these in test functions only, not in their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod cost;
mod crashes;
mod image;
mod recorder;
