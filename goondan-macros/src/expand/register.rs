//! Owns the making of an extension in the expansion: its parameters, the call of `#[init]`, the registrations.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{middleware, ours_at, parameters, returned};
use crate::check::Plan;

/// ```text
/// #[init]
/// async fn new(api: ExtensionApi, config: Config) -> Result<Self> { … }
/// ```
/// becomes
/// ```text
/// fn __register(api: ExtensionApi, config: Value) -> BoxFuture<'static, Result<()>> {
///     Box::pin(async move {
///         let slots = InitSlots::all();
///         let (p0, slots) = slots.take::<ExtensionApi, _, _>();
///         let (p1, slots) = slots.take::<Config, _, _>();
///         let mut given = Given::new(Clone::clone(&api), config);
///         let this = Arc::new(Made::<Window>::into_result(
///             <Window>::new((p0.read)(&mut given)?, (p1.read)(&mut given)?).await,
///         )?);
///         api.pipeline().register(Turn, __layer_trim(Clone::clone(&this)), Options::priority(0).named("trim"))?;
///         Ok(())
///     })
/// }
/// ```
pub(super) fn register(plan: &Plan<'_>) -> TokenStream {
    let this = &plan.block.header.self_ty;
    let sig = &plan.init.sig;
    let function = &sig.ident;

    let takes = takes(plan);
    let params = parameters(plan, sig);
    let values = params.iter().map(|(name, written, _)| quote_spanned!(ours_at(written)=> (#name.read)(&mut given)?));
    let awaited = sig.asyncness.map(|_| quote!(.await));
    let returned = returned(sig);
    let made = quote_spanned!(returned=> <#this>::#function(#(#values),*) #awaited);
    let made = quote_spanned!(returned=> __goondan::params::Made::<#this>::into_result(#made)?);
    let registrations = plan.middlewares.iter().map(middleware::registration);
    let body = quote_spanned! {Span::mixed_site()=>
        let slots = __goondan::params::InitSlots::all();
        #(#takes)*
        let mut given = __goondan::params::Given::new(__goondan::Clone::clone(&api), config);
        let this = __goondan::Arc::new(#made);
        #(#registrations)*
        __goondan::Ok(())
    };
    let future = quote_spanned!(ours_at(function)=> __goondan::Box::pin(async move { #body }));

    quote_spanned! {Span::mixed_site()=>
        // Slots that nobody takes, and an instance without layers, stay unused.
        #[allow(unused_mut, unused_variables)]
        fn __register(
            api: __goondan::ExtensionApi,
            config: __goondan::Value,
        ) -> __goondan::BoxFuture<'static, __goondan::Result<()>> {
            #future
        }
    }
}

/// ```text
/// fn __config_schema() -> Value {
///     let slots = InitSlots::all();
///     let (p0, slots) = slots.take::<ExtensionApi, _, _>();
///     let (p1, slots) = slots.take::<Config, _, _>();
///     Option::None.or_else(p0.schema).or_else(p1.schema).unwrap_or_else(no_config)
/// }
/// ```
pub(super) fn config_schema(plan: &Plan<'_>) -> TokenStream {
    let takes = takes(plan);
    let params = parameters(plan, &plan.init.sig);
    let names = params.iter().map(|(name, ..)| name);
    quote_spanned! {Span::mixed_site()=>
        #[allow(unused_variables)]
        fn __config_schema() -> __goondan::Value {
            let slots = __goondan::params::InitSlots::all();
            #(#takes)*
            __goondan::Option::None #(.or_else(#names.schema))* .unwrap_or_else(__goondan::params::no_config)
        }
    }
}

/// A wrong parameter makes both functions wrong. Being the same tokens in both, it is one error.
fn takes(plan: &Plan<'_>) -> impl Iterator<Item = TokenStream> {
    parameters(plan, &plan.init.sig).into_iter().map(|(name, written, ty)| {
        quote_spanned! {ours_at(written)=>
            let (#name, slots) = slots.take::<#ty, _, _>();
        }
    })
}
