//! Generates `__register`, which calls `#[init]` and registers every function, and `__config_schema`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use super::tokens::{mixed_site_at, parameters, read_values, return_span, schema, self_type, take_slots};
use super::{cleanup, middleware, subscription, tool};
use crate::check::{Plan, Registration};
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
///         let (p0, slots) = slots.take::<ExtensionApi, _, _, _>();
///         let (p1, slots) = slots.take::<Config, _, _, _>();
///         let mut inputs = InitInputs::new(Clone::clone(&api), config);
///         let this = IntoExtension::<Window>::into_result(
///             <Window>::new(p0(&mut inputs)?, p1(&mut inputs)?).await,
///         )?;
///         let bound = __Bound { this: Arc::new(this), api: Clone::clone(&api) };
///         api.pipeline().register(Turn, __layer_trim(Clone::clone(&bound)), MiddlewareOptions::priority(0).named("trim"))?;
///         Ok(())
///     })
/// }
/// ```
/// In a module, which has no value, the lines from `let this` to `let bound` are
/// ```text
///         IntoUnit::into_result(new(p0(&mut inputs)?, p1(&mut inputs)?).await)?;
///         let bound = __Bound { api: Clone::clone(&api) };
/// ```
pub(super) fn register(plan: &Plan<'_>) -> TokenStream {
    let init = plan.init.map(|init| self::init(plan, init));
    let this = (!plan.block.is_module()).then(|| quote_spanned!(Span::mixed_site()=> this: __goondan::Arc::new(this),));
    let registrations = plan.registrations.iter().map(|registration| match registration {
        Registration::Middleware(middleware) => middleware::registration(middleware),
        Registration::Tool(tool) => tool::registration(tool),
        Registration::Subscription(subscription) => subscription::registration(subscription),
        Registration::Cleanup(function) => cleanup::registration(function),
    });
    let body = quote_spanned! {Span::mixed_site()=>
        #init
        let bound = __Bound { #this api: __goondan::Clone::clone(&api) };
        #(#registrations)*
        __goondan::Ok(())
    };
    let at = plan.init.map_or_else(Span::mixed_site, |init| mixed_site_at(&init.sig.ident));
    let future = quote_spanned!(at=> __goondan::Box::pin(async move { #body }));

    quote_spanned! {Span::mixed_site()=>
        // The last `slots` is never read, `inputs` only by parameters, `bound` only by registrations.
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
    let (this, sig, function) = (self_type(plan.block), &init.sig, &init.sig.ident);
    let parameters = parameters(plan, sig);
    let (take_slots, values) = (take_slots(&parameters, 3), read_values(&parameters));
    let awaited = sig.asyncness.map(|_| quote!(.await));
    let span = return_span(sig);
    let call = match plan.block.is_module() {
        true => {
            let called = quote_spanned!(span=> #function(#values) #awaited);
            quote_spanned!(span=> __goondan::params::IntoUnit::into_result(#called)?;)
        }
        false => {
            let called = quote_spanned!(span=> <#this>::#function(#values) #awaited);
            quote_spanned!(span=> let this = __goondan::params::IntoExtension::<#this>::into_result(#called)?;)
        }
    };
    quote_spanned! {Span::mixed_site()=>
        let slots = __goondan::params::InitSlots::all();
        #take_slots
        let mut inputs = __goondan::params::InitInputs::new(__goondan::Clone::clone(&api), config);
        #call
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
