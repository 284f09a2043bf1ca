//! Owns what the functions of an extension may take and give.
//!
//! Parameters are found by type, not by name: each type that a function may take implements the trait of that kind of
//! function, for the slots that still hold it. Taking a parameter empties its slot, so that a second parameter of the
//! same type, or one of a foreign type, is a compile error at that parameter; any order, alias and rename compiles.
//!
//! Expansions take by the methods of the slots, and the emptied slots are a parameter of the traits, not an associated
//! type: in that form the compiler knows the slots when it looks for the implementation, and reports a fault once.
//!
//! Where everything is at hand, slots hold the values. `#[init]` and tools have a parameter that is read from JSON and
//! can fail to be: their slots are types only, and give a function for each parameter that reads its value.
//! There the slots implement the trait, for each parameter that they give. If the parameter did, the compiler would speak
//! of that trait alone, and not of the derive that the parameter lacks.

mod blocking;
mod bounds;
mod cleanup;
mod event;
mod init;
mod middleware;
mod outcome;
mod schema;
mod tool;

pub use blocking::run_blocking;
pub use bounds::{FromJson, HasSchema, IntoError, SecondFromJson, ToJson};
pub use cleanup::{CleanupParam, CleanupSlots};
pub use event::{EventParam, EventSlots};
pub use init::{Given, GivesToInit, InitSlots, RawConfig};
pub use middleware::{MiddlewareParam, MiddlewareSlots, TakesNext, all_taken};
pub use outcome::{Done, Made, Outcome, ToolOutcome, outcome};
pub use schema::{NoSchema, SchemaOf, nothing};
pub use tool::{Full, GivesToTool, OffThread, ToolGiven, ToolSlots, tool_item};

use crate::error::Result;

/// An empty slot: the parameter was taken.
#[derive(Clone, Copy, Debug)]
pub struct Taken;

/// Reads a parameter that was found by its type from what the runtime gives.
#[doc(hidden)]
pub type Read<Given, P> = fn(&mut Given) -> Result<P>;
