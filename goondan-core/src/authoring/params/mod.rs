//! The parameters and return values of an extension's functions.
//!
//! Parameters are matched by type, not by name. Each kind of function has a set of *slots*, one for each value that it
//! can be passed. A type that the function may take implements a trait for slots that still hold it; taking the
//! parameter marks its slot as [`Used`]. So a second parameter of the same type, or one of a foreign type, is a compile
//! error at that parameter, and any order, alias or rename compiles.
//!
//! Expansions call `take` on the slots. The slots that remain are a type parameter of the traits and not an associated
//! type: then the compiler knows the slots when it selects the implementation, and reports a mistake once.
//!
//! Middlewares, event handlers and cleanups already have their values, so their slots hold them. `#[init]` and tools
//! have one parameter that is read from JSON, which can fail. Their slots are types only, and `take` returns a function
//! that reads the parameter from the inputs. There the slots implement the trait for each parameter that they hold. If
//! the parameter did, the compiler would name that trait instead of the derive that the parameter lacks.

mod blocking;
mod bounds;
mod cleanup;
mod event;
mod init;
mod middleware;
mod returns;
mod schema;
mod tool;

pub use blocking::run_blocking;
pub use bounds::{FromJson, HasSchema, IntoError, SecondJsonParam, ToJson};
pub use cleanup::{CleanupParam, CleanupSlots};
pub use event::{EventParam, EventSlots};
pub use init::{HasInitParam, InitInputs, InitSlots, RawConfig};
pub use middleware::{MiddlewareParam, MiddlewareSlots, UsesNext, assert_uses_next};
pub use returns::{IntoExtension, IntoResult, IntoToolOutput, IntoUnit, handler_future};
pub use schema::{IsAnObject, NoSchema, SchemaOf, empty_object_schema};
pub use tool::{Available, Blocking, HasToolParam, ToolInputs, ToolSlots, tool_item};

use crate::error::Result;

/// A slot whose value a parameter took.
#[derive(Clone, Copy, Debug)]
pub struct Used;

/// Reads one parameter from the inputs of a call.
#[doc(hidden)]
pub type ReadParam<Inputs, P> = fn(&mut Inputs) -> Result<P>;
