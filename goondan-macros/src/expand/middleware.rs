//! Owns the layers in the expansion: one type for each middleware function.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote_spanned};

use super::{ours_at, parameters, returned, wrapper};
use crate::check::{Layer, Plan};

/// ```text
/// async fn trim(&self, next: Next<'_, Turn>, ctx: &mut TurnContext<'_>) -> Result<TurnResult> { … }
/// ```
/// becomes
/// ```text
/// struct __layer_trim(Arc<Window>);
///
/// impl Middleware<Turn> for __layer_trim {
///     fn handle<'a>(
///         &'a self,
///         ctx: &'a mut TurnContext<'_>,
///         next: Next<'a, Turn>,
///     ) -> BoxFuture<'a, Result<TurnResult>> {
///         let slots = MiddlewareSlots::new(ctx, next);
///         let (p0, slots) = slots.take_in_turn::<Next<'_, Turn>, _>();
///         let (p1, slots) = slots.take_in_turn::<&mut TurnContext<'_>, _>();
///         all_taken(&slots);
///         Box::pin(async move { Outcome::<TurnResult>::into_result(<Window>::trim(&self.0, p0, p1).await) })
///     }
/// }
/// ```
pub(super) fn middleware(plan: &Plan<'_>, layer: &Layer<'_>) -> TokenStream {
    let this = &plan.block.header.self_ty;
    let sig = &layer.function.sig;
    let (function, wrapper) = (&sig.ident, wrapper(sig));

    let kind = kind(layer);
    let [context, result] = ["Context", "Result"].map(|part| format_ident!("{kind}{part}"));
    let take = Ident::new(layer.kind.take(), Span::mixed_site());

    let params = parameters(plan, sig);
    let names = params.iter().map(|(name, ..)| name);
    let takes = params.iter().map(|(name, written, ty)| {
        quote_spanned! {ours_at(written)=>
            let (#name, slots) = slots.#take::<#ty, _>();
        }
    });
    let all_taken = quote_spanned!(ours_at(function)=> __goondan::params::all_taken(&slots););
    let returned = returned(sig);
    let call = quote_spanned!(returned=> <#this>::#function(&self.0, #(#names),*).await);
    let outcome = quote_spanned!(returned=> __goondan::params::Outcome::<__goondan::#result>::into_result(#call));
    let future = quote_spanned!(ours_at(function)=> __goondan::Box::pin(async move { #outcome }));

    quote_spanned! {Span::mixed_site()=>
        #[allow(non_camel_case_types)]
        struct #wrapper(__goondan::Arc<#this>);

        #[automatically_derived]
        impl __goondan::Middleware<__goondan::#kind> for #wrapper {
            fn handle<'a>(
                &'a self,
                ctx: &'a mut __goondan::#context<'_>,
                next: __goondan::Next<'a, __goondan::#kind>,
            ) -> __goondan::BoxFuture<'a, __goondan::Result<__goondan::#result>> {
                let slots = __goondan::params::MiddlewareSlots::new(ctx, next);
                #(#takes)*
                #all_taken
                #future
            }
        }
    }
}

/// ```text
/// api.pipeline().register(Turn, __layer_trim(Clone::clone(&this)), Options::priority(-5).named("trim"))?;
/// ```
pub(super) fn registration(layer: &Layer<'_>) -> TokenStream {
    let (kind, wrapper) = (kind(layer), wrapper(&layer.function.sig));
    let (name, priority) = (layer.function.name(), layer.priority);
    quote_spanned! {Span::mixed_site()=>
        api.pipeline().register(
            __goondan::#kind,
            #wrapper(__goondan::Clone::clone(&this)),
            __goondan::Options::priority(#priority).named(#name),
        )?;
    }
}

/// `Turn`, `Step` or `ToolCall`: the variant and the type have one name.
pub(super) fn kind(layer: &Layer<'_>) -> Ident {
    Ident::new(layer.kind.type_name(), Span::mixed_site())
}
