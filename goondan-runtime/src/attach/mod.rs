//! Extensions in one conversation: they register, become active, and clean up.

mod active;
mod generation;
mod handle;
mod late;
mod register;
mod reload_requests;
mod replace;
mod services;
mod shared_state;
mod waiting_reload;

pub(super) use active::{deactivate, run_cleanup};
pub(super) use generation::{Generation, Newest};
pub(super) use register::Staged;
pub(super) use reload_requests::ReloadListener;
pub use reload_requests::{ReloadRequest, ReloadRequests};
pub(super) use replace::{Replaced, StepGenerations, reload_failed, replace};
pub(super) use services::{AgentUpcalls, InstanceUpcalls, Services, Upcalls};
