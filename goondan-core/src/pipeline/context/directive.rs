//! Directives: orders of a middleware to the run through a method of its context, such as to hold the stream.

use crate::conversation::{Content, MessageEvent};
use crate::depth::MAX_DEPTH;
use crate::error::Result;
use crate::name::ExtensionName;
use crate::tool::ToolReply;

/// A directive, which a method of a context makes of its argument.
pub trait Directive: Send {
    /// The name of the method.
    const METHOD: &'static str;
    /// The name in the binary contract.
    const NAME: &'static str;
    /// The argument of the method.
    type Payload: Payload;

    /// The directive with this argument.
    fn new(payload: Self::Payload) -> Self;
    /// Returns the argument.
    fn into_payload(self) -> Self::Payload;
}

/// Behind a context: applies directives of one type.
pub trait Apply<D> {
    /// Applies a directive of the extension `by`.
    fn apply(&mut self, directive: D, by: &ExtensionName);
}

/// The argument of a directive.
pub trait Payload: Sized {
    /// Returns the argument if the run can use it.
    ///
    /// # Errors
    /// Such as `E_VALUE_DEPTH` when a value is nested too deeply.
    fn checked(self) -> Result<Self> {
        Ok(self)
    }
}

impl Payload for () {}

impl Payload for MessageEvent {
    #[inline]
    fn checked(self) -> Result<Self> {
        match self.check_depth() {
            Ok(()) => Ok(self),
            Err(error) => Err(self.refuse(error)),
        }
    }
}

impl Payload for Content {
    #[inline]
    fn checked(self) -> Result<Self> {
        match self.check_depth(MAX_DEPTH) {
            Ok(()) => Ok(self),
            Err(error) => {
                self.discard();
                Err(error.refuse("the prepared answer"))
            }
        }
    }
}

impl Payload for ToolReply {
    fn checked(self) -> Result<Self> {
        Self::checked(self)
    }
}

/// Declares a type for each directive.
macro_rules! declare {
    ($(
        $kind:ident($context:ident) host $host:ident: $base:ident, core $output:ident, copies $copies:ident: $copy:ident
        $fields:tt directives {
            $($method:ident($($arg:ident: $payload:ty)?) as $directive:ident = $name:literal $doc:tt;)*
        }
    )*) => {
        $($(
            #[doc = concat!("Made by [`", stringify!($context), "::", stringify!($method), "`](crate::",
                stringify!($context), "::", stringify!($method), ").")]
            #[derive(Debug)]
            pub struct $directive(pub declare!(@payload $($payload)?));

            impl Directive for $directive {
                const METHOD: &'static str = stringify!($method);
                const NAME: &'static str = $name;
                type Payload = declare!(@payload $($payload)?);

                fn new(payload: Self::Payload) -> Self {
                    Self(payload)
                }

                fn into_payload(self) -> Self::Payload {
                    self.0
                }
            }
        )*)*
    };
    (@payload) => { () };
    (@payload $payload:ty) => { $payload };
}

crate::context_members!(declare);
