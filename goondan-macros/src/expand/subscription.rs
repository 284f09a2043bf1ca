//! Owns the subscriptions in the expansion: one type for each function under `#[on]`.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use super::tokens::{call, conditions, names, ours_at, parameters, returned, takes, wrapper};
use crate::check::{Plan, Subscription};

/// ```text
/// async fn count(&self, event: &Event) -> Result<()> { … }
/// ```
/// becomes
/// ```text
/// struct __on_count(__Bound);
///
/// impl EventHandler for __on_count {
///     fn handle<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<()>> {
///         let bound = &self.0;
///         let slots = EventSlots::new(event, &bound.api);
///         let (p0, slots) = slots.take::<&Event, _, _>();
///         Box::pin(async move { Outcome::<()>::into_result(<Window>::count(&bound.this, p0).await) })
///     }
/// }
/// ```
pub(super) fn subscription(plan: &Plan<'_>, on: &Subscription<'_>) -> TokenStream {
    let sig = &on.function.sig;
    let (wrapper, parameters) = (wrapper("on", sig), parameters(plan, sig));
    let takes = takes(&parameters, "take", 2);
    let call = call(plan, sig, &names(&parameters));
    let outcome = quote_spanned!(returned(sig)=> __goondan::params::Outcome::<()>::into_result(#call));
    let future = quote_spanned!(ours_at(&sig.ident)=> __goondan::Box::pin(async move { #outcome }));

    let conditions = conditions(on.function);
    quote_spanned! {Span::mixed_site()=>
        #conditions
        #[allow(non_camel_case_types)]
        struct #wrapper(__Bound);

        #conditions
        #[automatically_derived]
        impl __goondan::EventHandler for #wrapper {
            #[allow(unused_variables)]
            fn handle<'a>(
                &'a self,
                event: &'a __goondan::Event,
            ) -> __goondan::BoxFuture<'a, __goondan::Result<()>> {
                let bound = &self.0;
                let slots = __goondan::params::EventSlots::new(event, &bound.api);
                #takes
                #future
            }
        }
    }
}

/// ```text
/// api.host().register(AnyRegistration::Subscription(
///     "turn.completed".parse()?,
///     Arc::new(__on_count(Clone::clone(&bound))),
/// ))?;
/// ```
pub(super) fn registration(on: &Subscription<'_>) -> TokenStream {
    let (wrapper, pattern) = (wrapper("on", &on.function.sig), &on.pattern);
    let conditions = conditions(on.function);
    quote_spanned! {Span::mixed_site()=>
        #conditions
        api.host().register(__goondan::AnyRegistration::Subscription(
            #pattern.parse()?,
            __goondan::Arc::new(#wrapper(__goondan::Clone::clone(&bound))),
        ))?;
    }
}
