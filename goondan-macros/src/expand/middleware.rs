//! Owns the layers in the expansion: one type for each middleware function.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote_spanned};

use super::tokens::{begin, conditions, names, ours_at, parameters, returned, takes, wrapper};
use crate::check::{Layer, Plan};

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
///         all_taken::<Turn>(&slots);
///         Box::pin(outcome::<TurnResult, _>(<Window>::trim(&bound.this, p0, p1)))
///     }
/// }
/// ```
pub(super) fn middleware(plan: &Plan<'_>, layer: &Layer<'_>) -> TokenStream {
    let sig = &layer.function.sig;
    let (wrapper, kind) = (wrapper("layer", sig), kind(layer));
    let [context, result] = ["Context", "Result"].map(|part| format_ident!("{kind}{part}"));

    let parameters = parameters(plan, sig);
    let takes = takes(&parameters, "take", 1);
    let all_taken = quote_spanned!(ours_at(&sig.ident)=> __goondan::params::all_taken::<__goondan::#kind>(&slots););
    let begun = begin(plan, sig, &names(&parameters));
    let future = quote_spanned! {returned(sig)=>
        __goondan::Box::pin(__goondan::params::outcome::<__goondan::#result, _>(#begun))
    };

    let conditions = conditions(layer.function);
    quote_spanned! {Span::mixed_site()=>
        #conditions
        #[allow(non_camel_case_types)]
        struct #wrapper(__Bound);

        #conditions
        #[automatically_derived]
        impl __goondan::Middleware<__goondan::#kind> for #wrapper {
            fn handle<'a>(
                &'a self,
                ctx: &'a mut __goondan::#context<'_>,
                next: __goondan::Next<'a, __goondan::#kind>,
            ) -> __goondan::BoxFuture<'a, __goondan::Result<__goondan::#result>> {
                let bound = &self.0;
                let slots = __goondan::params::MiddlewareSlots::new(__goondan::#kind, ctx, next, &bound.api);
                #takes
                #all_taken
                #future
            }
        }
    }
}

/// ```text
/// api.pipeline().register(Turn, __layer_trim(Clone::clone(&bound)), Options::priority(-5).named("trim"))?;
/// ```
pub(super) fn registration(layer: &Layer<'_>) -> TokenStream {
    let (kind, wrapper) = (kind(layer), wrapper("layer", &layer.function.sig));
    let (name, priority, before, after) = (layer.function.name(), layer.priority, &layer.before, &layer.after);
    let conditions = conditions(layer.function);
    quote_spanned! {Span::mixed_site()=>
        #conditions
        api.pipeline().register(
            __goondan::#kind,
            #wrapper(__goondan::Clone::clone(&bound)),
            __goondan::Options::priority(#priority).named(#name) #(.before(#before))* #(.after(#after))*,
        )?;
    }
}

/// `Turn`, `Step` or `ToolCall`: the variant and the type have one name.
pub(super) fn kind(layer: &Layer<'_>) -> Ident {
    Ident::new(layer.kind.type_name(), Span::mixed_site())
}
