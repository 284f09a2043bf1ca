//! Expands the function under `#[cleanup]` to a handler and its registration.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use super::tokens::{awaited_call, cfgs, mixed_site_at, parameters, return_span, take_slots, values, wrapper};
use crate::check::Plan;
use crate::model::Function;

/// ```text
/// async fn close(&self) { … }
/// ```
/// becomes
/// ```text
/// struct __cleanup_close(__Bound);
///
/// impl CleanupHandler for __cleanup_close {
///     fn clean_up(&self) -> BoxFuture<'_, Result<()>> {
///         let bound = &self.0;
///         let slots = CleanupSlots::new(&bound.api);
///         Box::pin(async move { IntoUnit::into_result(<Window>::close(&bound.this).await) })
///     }
/// }
/// ```
pub(super) fn cleanup(plan: &Plan<'_>, function: &Function) -> TokenStream {
    let sig = &function.sig;
    let (wrapper, parameters) = (wrapper("cleanup", sig), parameters(plan, sig));
    let take_slots = take_slots(&parameters, 1);
    let call = awaited_call(plan, sig, &values(&parameters));
    let outcome = quote_spanned!(return_span(sig)=> __goondan::params::IntoUnit::into_result(#call));
    let future = quote_spanned!(mixed_site_at(&sig.ident)=> __goondan::Box::pin(async move { #outcome }));

    let cfgs = cfgs(function);
    quote_spanned! {Span::mixed_site()=>
        #cfgs
        #[allow(non_camel_case_types)]
        struct #wrapper(__Bound);

        #cfgs
        #[automatically_derived]
        impl __goondan::CleanupHandler for #wrapper {
            #[allow(unused_variables)]
            fn clean_up(&self) -> __goondan::BoxFuture<'_, __goondan::Result<()>> {
                let bound = &self.0;
                let slots = __goondan::params::CleanupSlots::new(&bound.api);
                #take_slots
                #future
            }
        }
    }
}

/// ```text
/// api.host().register(AnyRegistration::Cleanup(Arc::new(__cleanup_close(Clone::clone(&bound)))))?;
/// ```
pub(super) fn registration(function: &Function) -> TokenStream {
    let wrapper = wrapper("cleanup", &function.sig);
    let cfgs = cfgs(function);
    quote_spanned! {Span::mixed_site()=>
        #cfgs
        api.host().register(__goondan::AnyRegistration::Cleanup(
            __goondan::Arc::new(#wrapper(__goondan::Clone::clone(&bound))),
        ))?;
    }
}
