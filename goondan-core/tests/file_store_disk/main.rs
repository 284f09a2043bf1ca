//! CRASH-01, through the seam to the disk: what agents do over several turns is noted operation by operation, and every
//! image that a crash of the process or of the machine can leave on the way is opened again.
#![cfg(feature = "runtime")]
// clippy.toml frees only the test functions, not their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod cost;
mod crashes;
mod image;
mod recorder;
