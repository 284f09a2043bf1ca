//! Expands a function under `#[on]` to an event handler and its registration.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use super::tokens::{awaited_call, cfgs, mixed_site_at, parameters, return_span, take_slots, values, wrapper};
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
///         Box::pin(async move { IntoResult::<()>::into_result(<Window>::count(&bound.this, p0).await) })
///     }
/// }
/// ```
pub(super) fn subscription(plan: &Plan<'_>, subscription: &Subscription<'_>) -> TokenStream {
    let sig = &subscription.function.sig;
    let (wrapper, parameters) = (wrapper("on", sig), parameters(plan, sig));
    let take_slots = take_slots(&parameters, 2);
    let call = awaited_call(plan, sig, &values(&parameters));
    let outcome = quote_spanned!(return_span(sig)=> __goondan::params::IntoResult::<()>::into_result(#call));
    let future = quote_spanned!(mixed_site_at(&sig.ident)=> __goondan::Box::pin(async move { #outcome }));

    let cfgs = cfgs(subscription.function);
    quote_spanned! {Span::mixed_site()=>
        #cfgs
        #[allow(non_camel_case_types)]
        struct #wrapper(__Bound);

        #cfgs
        #[automatically_derived]
        impl __goondan::EventHandler for #wrapper {
            #[allow(unused_variables)]
            fn handle<'a>(
                &'a self,
                event: &'a __goondan::Event,
            ) -> __goondan::BoxFuture<'a, __goondan::Result<()>> {
                let bound = &self.0;
                let slots = __goondan::params::EventSlots::new(event, &bound.api);
                #take_slots
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
pub(super) fn registration(subscription: &Subscription<'_>) -> TokenStream {
    let (wrapper, pattern) = (wrapper("on", &subscription.function.sig), &subscription.pattern);
    let cfgs = cfgs(subscription.function);
    quote_spanned! {Span::mixed_site()=>
        #cfgs
        api.host().register(__goondan::AnyRegistration::Subscription(
            #pattern.parse()?,
            __goondan::Arc::new(#wrapper(__goondan::Clone::clone(&bound))),
        ))?;
    }
}
