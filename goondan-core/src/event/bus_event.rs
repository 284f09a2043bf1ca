//! Bus events: a name and arguments.
// EVENT-05

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::pattern::check_name;
use crate::BoxFuture;
use crate::depth::{self, TooDeep, Unwritable};
use crate::error::{Error, ErrorCode, Result};

/// An event on the bus of one instance. Clones share the name and the arguments.
#[derive(Clone, PartialEq)]
pub struct Event {
    name: Arc<str>,
    args: Arc<[Value]>,
}

impl Event {
    /// Returns an event called `name` with the arguments `args`.
    ///
    /// # Errors
    /// `E_EVENT_NAME` when `name` has other characters than letters, digits, `.`, `_`, `-` and `:`, or none;
    /// `E_EXT_RUNTIME` when an argument cannot be serialized as JSON; `E_VALUE_DEPTH` when it is nested too deeply.
    pub fn new(name: impl Into<Arc<str>>, args: impl EventArgs) -> Result<Self> {
        let name = name.into();
        let args = args.into_values()?;
        let refused = args.iter().enumerate().find_map(|(index, arg)| Some((index, depth::check(arg).err()?)));
        if let Some((index, error)) = refused {
            depth::discard(args);
            return Err(refuse(error, index));
        }
        check_name(&name)?;
        Ok(Self::from_values(name, args))
    }

    /// Returns an event of the runtime, whose arguments are not checked.
    #[doc(hidden)]
    pub fn from_values(name: impl Into<Arc<str>>, args: Vec<Value>) -> Self {
        Self { name: name.into(), args: args.into() }
    }

    /// Returns the name, such as `turn.completed`.
    pub fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    #[doc(hidden)]
    pub fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns all arguments, in the order in which they were passed to [`new`](Self::new).
    pub fn args(&self) -> &[Value] {
        &self.args
    }

    /// Deserializes the first argument, which is the payload of every standard event.
    ///
    /// # Errors
    /// `E_EXT_RUNTIME` when there is no argument, or when it cannot be deserialized as `T`.
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

#[cold]
fn refuse(error: TooDeep, index: usize) -> Error {
    error.refuse(format_args!("argument {} of the event", index + 1))
}

/// The arguments of an event: a tuple of up to four values that can be serialized as JSON.
///
/// ```
/// use goondan::event::Event;
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
    /// Serializes the arguments.
    ///
    /// # Errors
    /// When one of them cannot be serialized as JSON.
    fn into_values(self) -> Result<Vec<Value>>;
}

macro_rules! event_args {
    ($($name:ident),*) => {
        impl<$($name: Serialize),*> EventArgs for ($($name,)*) {
            fn into_values(self) -> Result<Vec<Value>> {
                #[expect(non_snake_case, reason = "each member has the name of its type")]
                let ($($name,)*) = self;
                // All are converted before the first error is returned, so that each is dropped there.
                let values = [$(depth::to_value($name)),*];
                let values = values.into_iter().enumerate().map(|(index, value)| {
                    value.map_err(|error| match error {
                        Unwritable::TooDeep(error) => refuse(error, index),
                        Unwritable::Json(error) => error.into(),
                    })
                });
                values.collect()
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

/// The code that handles the events of a subscription. `#[on]` generates implementations; an async closure that takes
/// an [`Event`] is one too.
pub trait EventHandler: Send + Sync + 'static {
    /// Handles one event. An error is logged and does not affect other handlers or the emitter.
    // EVENT-03
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
