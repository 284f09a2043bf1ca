//! Values that may be in another binary: results whose fields are read one by one, as JSON, and runs of a core.
//!
//! A middleware in a library is handed results that the host keeps. Copying all of them would cost more than most
//! middlewares do, so a library holds a number, and reads or writes a field when it is used.

mod core_run;
mod fields;
mod lazy;
mod maybe_remote;
mod remote;

pub use core_run::{CoreRun, RemoteCore};
pub(crate) use fields::result_fields;
pub(crate) use lazy::Lazy;
pub(crate) use maybe_remote::MaybeRemote;
pub use remote::{Crossing, RemoteHost, RemoteResult, Returned};
pub(crate) use remote::{unknown, unwritable};
