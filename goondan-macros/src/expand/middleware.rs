//! Expands a function under `#[middleware]` to a layer and its registration.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote_spanned};

use super::tokens::{call, cfgs, mixed_site_at, parameters, return_span, take_slots, values, wrapper};
use crate::check::{Middleware, Plan};

/// ```text
/// async fn trim(&self, next: Next<'_, Turn>, ctx: &mut TurnContext<'_>) -> Result<TurnResult> { … }
/// ```
/// becomes
/// ```text
/// struct __layer_trim(__Bound);
///
/// impl Middleware<Turn> for __layer_trim {
///     fn handle<'a>(
///         &'a self,
///         ctx: &'a mut TurnContext<'_>,
///         next: Next<'a, Turn>,
///     ) -> BoxFuture<'a, Result<TurnResult>> {
///         let bound = &self.0;
///         let slots = MiddlewareSlots::new(Turn, ctx, next, &bound.api);
///         let (p0, slots) = slots.take::<Next<'_, Turn>, _>();
///         let (p1, slots) = slots.take::<&mut TurnContext<'_>, _>();
///         assert_uses_next::<Turn>(&slots);
///         Box::pin(handler_future::<TurnResult, _>(<Window>::trim(&bound.this, p0, p1)))
///     }
/// }
/// ```
pub(super) fn middleware(plan: &Plan<'_>, middleware: &Middleware<'_>) -> TokenStream {
    let sig = &middleware.function.sig;
    let (wrapper, kind) = (wrapper("layer", sig), kind(middleware));
    let [context, result] = ["Context", "Result"].map(|part| format_ident!("{kind}{part}"));

    let parameters = parameters(plan, sig);
    let take_slots = take_slots(&parameters, 1);
    let all_taken =
        quote_spanned!(mixed_site_at(&sig.ident)=> __goondan::params::assert_uses_next::<__goondan::#kind>(&slots););
    let call = call(plan, sig, &values(&parameters));
    let future = quote_spanned! {return_span(sig)=>
        __goondan::Box::pin(__goondan::params::handler_future::<__goondan::#result, _>(#call))
    };

    let cfgs = cfgs(middleware.function);
    quote_spanned! {Span::mixed_site()=>
        #cfgs
        #[allow(non_camel_case_types)]
        struct #wrapper(__Bound);

        #cfgs
        #[automatically_derived]
        impl __goondan::Middleware<__goondan::#kind> for #wrapper {
            fn handle<'a>(
                &'a self,
                ctx: &'a mut __goondan::#context<'_>,
                next: __goondan::Next<'a, __goondan::#kind>,
            ) -> __goondan::BoxFuture<'a, __goondan::Result<__goondan::#result>> {
                let bound = &self.0;
                let slots = __goondan::params::MiddlewareSlots::new(__goondan::#kind, ctx, next, &bound.api);
                #take_slots
                #all_taken
                #future
            }
        }
    }
}

/// ```text
/// api.pipeline().register(Turn, __layer_trim(Clone::clone(&bound)), MiddlewareOptions::priority(-5).named("trim"))?;
/// ```
pub(super) fn registration(middleware: &Middleware<'_>) -> TokenStream {
    let Middleware { function, priority, before, after, .. } = middleware;
    let (kind, wrapper, name) = (kind(middleware), wrapper("layer", &function.sig), function.name());
    let cfgs = cfgs(function);
    quote_spanned! {Span::mixed_site()=>
        #cfgs
        api.pipeline().register(
            __goondan::#kind,
            #wrapper(__goondan::Clone::clone(&bound)),
            __goondan::MiddlewareOptions::priority(#priority).named(#name) #(.before(#before))* #(.after(#after))*,
        )?;
    }
}

/// `Turn`, `Step` or `ToolCall`: the name of the type and of the variant of `MiddlewareKind`.
pub(super) fn kind(middleware: &Middleware<'_>) -> Ident {
    Ident::new(middleware.kind.type_name(), Span::mixed_site())
}
