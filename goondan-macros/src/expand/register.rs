//! Owns the making of an extension in the expansion: its parameters, the call of `#[init]`, the registrations.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use super::tokens::{ours_at, parameters, reads, returned, schema, takes};
use super::{cleanup, middleware, subscription, this, tool};
use crate::check::{Part, Plan};
use crate::model::Function;

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
///         let this = Made::<Window>::into_result(
///             <Window>::new(p0(&mut given)?, p1(&mut given)?).await,
///         )?;
///         let bound = __Bound { this: Arc::new(this), api: Clone::clone(&api) };
///         api.pipeline().register(Turn, __layer_trim(Clone::clone(&bound)), Options::priority(0).named("trim"))?;
///         Ok(())
///     })
/// }
/// ```
/// In a module, which has no instance, the second half begins with
/// ```text
///         Done::into_result(new(p0(&mut given)?, p1(&mut given)?).await)?;
///         let bound = __Bound { api: Clone::clone(&api) };
/// ```
pub(super) fn register(plan: &Plan<'_>) -> TokenStream {
    let init = plan.init.map(|init| self::init(plan, init));
    let this = (!plan.block.is_module()).then(|| quote_spanned!(Span::mixed_site()=> this: __goondan::Arc::new(this),));
    let registrations = plan.parts.iter().map(|part| match part {
        Part::Layer(layer) => middleware::registration(layer),
        Part::Tool(tool) => tool::registration(tool),
        Part::Subscription(on) => subscription::registration(on),
        Part::Cleanup(function) => cleanup::registration(function),
    });
    let body = quote_spanned! {Span::mixed_site()=>
        #init
        let bound = __Bound { #this api: __goondan::Clone::clone(&api) };
        #(#registrations)*
        __goondan::Ok(())
    };
    let at = plan.init.map_or_else(Span::mixed_site, |init| ours_at(&init.sig.ident));
    let future = quote_spanned!(at=> __goondan::Box::pin(async move { #body }));

    quote_spanned! {Span::mixed_site()=>
        // Slots that nobody takes, and an instance that nothing is bound to, stay unused.
        #[allow(unused_mut, unused_variables)]
        fn __register(
            api: __goondan::ExtensionApi,
            config: __goondan::Value,
        ) -> __goondan::BoxFuture<'static, __goondan::Result<()>> {
            #future
        }
    }
}

fn init(plan: &Plan<'_>, init: &Function) -> TokenStream {
    let (this, sig, function) = (this(plan.block), &init.sig, &init.sig.ident);
    let parameters = parameters(plan, sig);
    let (takes, values) = (takes(&parameters, "take", 2), reads(&parameters));
    let awaited = sig.asyncness.map(|_| quote!(.await));
    let returned = returned(sig);
    let made = match plan.block.is_module() {
        true => {
            let called = quote_spanned!(returned=> #function(#values) #awaited);
            quote_spanned!(returned=> __goondan::params::Done::into_result(#called)?;)
        }
        false => {
            let called = quote_spanned!(returned=> <#this>::#function(#values) #awaited);
            quote_spanned!(returned=> let this = __goondan::params::Made::<#this>::into_result(#called)?;)
        }
    };
    quote_spanned! {Span::mixed_site()=>
        let slots = __goondan::params::InitSlots::all();
        #takes
        let mut given = __goondan::params::Given::new(__goondan::Clone::clone(&api), config);
        #made
    }
}

/// `fn __config_schema() -> Value { … }`
pub(super) fn config_schema(plan: &Plan<'_>) -> TokenStream {
    let parameters = plan.init.map(|init| parameters(plan, &init.sig)).unwrap_or_default();
    let schema = schema(&parameters, "config");
    quote_spanned! {Span::mixed_site()=>
        fn __config_schema() -> __goondan::Value {
            #schema
        }
    }
}
