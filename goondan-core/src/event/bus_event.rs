//! Owns the bus event: a name and the arguments that its emitter gave (EVENT-05).

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::BoxFuture;
use crate::error::{Error, ErrorCode, Result};

/// Something that happened, on the bus of one instance. Clones share the arguments.
#[derive(Clone, PartialEq)]
pub struct Event {
    name: Arc<str>,
    args: Arc<[Value]>,
}

impl Event {
    /// An event called `name`, with the arguments `args`.
    ///
    /// # Errors
    /// `E_EXT_RUNTIME` when an argument cannot be written as JSON.
    pub fn new(name: impl Into<Arc<str>>, args: impl EventArgs) -> Result<Self> {
        Ok(Self { name: name.into(), args: args.into_values()?.into() })
    }

    /// The name, such as `turn.completed`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All arguments, in the order in which they were emitted.
    pub fn args(&self) -> &[Value] {
        &self.args
    }

    /// The first argument, read as `T`: the payload of every standard event.
    ///
    /// # Errors
    /// `E_EXT_RUNTIME` when there is none, or when it is of another shape.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T> {
        let payload =
            self.args.first().ok_or_else(|| Error::msg(format!("the event `{}` has no payload", self.name)))?;
        T::deserialize(payload).map_err(|error| {
            Error::new(ErrorCode::EXT_RUNTIME, format!("the payload of the event `{}` is of another shape", self.name))
                .caused_by(error)
        })
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.name, self.args)
    }
}

/// The arguments of an event: a tuple of up to four values that can be written as JSON.
///
/// ```
/// use goondan::Event;
/// let event = Event::new("note.added", ("groceries", 3))?;
/// assert_eq!(event.args().len(), 2);
/// # Ok::<(), goondan::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the arguments of an event",
    label = "write a tuple, such as `(value,)` or `()`",
    note = "each member derives `serde::Serialize`; there are at most four"
)]
pub trait EventArgs {
    /// The arguments as JSON.
    ///
    /// # Errors
    /// When one of them cannot be written as JSON.
    fn into_values(self) -> Result<Vec<Value>>;
}

macro_rules! event_args {
    ($($name:ident),*) => {
        impl<$($name: Serialize),*> EventArgs for ($($name,)*) {
            fn into_values(self) -> Result<Vec<Value>> {
                #[expect(non_snake_case, reason = "each member is called like its type")]
                let ($($name,)*) = self;
                Ok(vec![$(serde_json::to_value($name)?),*])
            }
        }
    };
}

impl EventArgs for () {
    fn into_values(self) -> Result<Vec<Value>> {
        Ok(Vec::new())
    }
}

event_args!(A);
event_args!(A, B);
event_args!(A, B, C);
event_args!(A, B, C, D);

impl EventArgs for Vec<Value> {
    fn into_values(self) -> Result<Vec<Value>> {
        Ok(self)
    }
}

/// Reacts to events. `#[on]` writes implementations; an async closure that takes an [`Event`] is one too.
pub trait EventHandler: Send + Sync + 'static {
    /// Handles one event. An error is logged and reaches nobody else (EVENT-03).
    fn handle<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<()>>;
}

impl<F, Fut> EventHandler for F
where
    F: Fn(Event) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    fn handle<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<()>> {
        Box::pin(self(event.clone()))
    }
}
