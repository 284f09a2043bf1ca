//! The accessors of the members that are declared in `members`.

use super::directive::{self, Apply, Directive, Payload};
use super::host::{StepHost, ToolCallHost};
use super::{StepContext, ToolCallContext};

macro_rules! declare {
    ($(
        $kind:ident($context:ident) host $host:ident: $base:ident, core $output:ident, copies $copies:ident: $copy:ident
        {
            $($mode:ident $name:ident: $type:ty = $json:literal { $(#[doc = $doc:literal])* }
                $($name_mut:ident { $(#[doc = $doc_mut:literal])* })?;)*
        } directives {
            $($method:ident($($arg:ident: $payload:ty)?) as $directive:ident = $directive_name:literal
                { $(#[doc = $about:literal])* };)*
        }
    )*) => {
        $(
            impl $context<'_> {
                $(
                    declare! { @field $mode $name [$($doc)*] $type }
                    $(
                        $(#[doc = $doc_mut])*
                        pub fn $name_mut(&mut self) -> &mut $type {
                            if let Some(by) = self.frame.extension() {
                                self.host.changing(stringify!($name), by);
                            }
                            self.host.$name_mut()
                        }
                    )?
                )*
                $(
                    $(#[doc = $about])*
                    pub fn $method(&mut self $(, $arg: impl Into<$payload>)?) {
                        self.apply(directive::$directive(declare!(@payload $($arg)?)));
                    }
                )*

                /// Applies a directive of the extension whose layer runs.
                #[doc(hidden)]
                pub fn apply<D: Directive>(&mut self, directive: D)
                where
                    for<'h> dyn $host + 'h: Apply<D>,
                {
                    match (directive.into_payload().checked(), self.frame.extension()) {
                        (Ok(payload), Some(by)) => Apply::apply(&mut *self.host, D::new(payload), by),
                        (Err(error), _) => self.host.refuse(self.frame.blame(error)),
                        // Only layers have the context.
                        (Ok(_), None) => {}
                    }
                }
            }
        )*
    };
    (@field value $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        pub fn $name(&self) -> $type {
            self.host.$name()
        }
    };
    (@field text $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        pub fn $name(&self) -> &str {
            self.host.$name()
        }
    };
    (@field $mode:ident $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        pub fn $name(&self) -> &$type {
            self.host.$name()
        }
    };
    (@payload) => { () };
    (@payload $arg:ident) => { $arg.into() };
}

crate::context_members!(declare);
