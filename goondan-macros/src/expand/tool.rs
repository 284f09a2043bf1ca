//! Expands a function under `#[tool]` to a handler, its descriptor, the schema of its input, and its registration.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote_spanned};

use super::tokens::{
    awaited_call, cfgs, mixed_site_at, parameters, read_values, return_span, schema, self_type, take_slots, wrapper,
};
use crate::attr::doc_comment;
use crate::check::{Plan, Present, Tool};

/// ```text
/// /// Returns how many messages the window keeps.
/// #[tool(effect = read, timeout = "5s")]
/// async fn status(&self, input: StatusInput, ctx: &ToolContext<'_>) -> Result<Status> { … }
/// ```
/// becomes
/// ```text
/// struct __tool_status(__Bound);                                                  // + handler
///
/// impl __tool_status {
///     const DESCRIPTOR: ToolDescriptor = ToolDescriptor::new("window__status", &Self::parameters).description(…);
///
///     fn parameters() -> Value { … }                                              // see `tokens::schema`
/// }
/// ```
pub(super) fn tool(plan: &Plan<'_>, tool: &Tool<'_>) -> TokenStream {
    let wrapper = wrapper("tool", &tool.function.sig);
    let (name, description) = (&tool.name, doc_comment(&tool.function.attrs));
    let effect = Ident::new(tool.effect.variant(), Span::mixed_site());
    let timeout =
        tool.timeout.map(|time| quote_spanned!(Span::mixed_site()=> .timeout(__goondan::Duration::from_millis(#time))));
    let asks = tool.asks.then(|| quote_spanned!(Span::mixed_site()=> .asks()));
    let parallel = tool.parallel.then(|| quote_spanned!(Span::mixed_site()=> .parallel()));
    let line = match &tool.present {
        Some(Present::Line(line)) => {
            Some(quote_spanned!(Span::mixed_site()=> .line(__goondan::LineTemplate::new(#line))))
        }
        _ => None,
    };
    let schema = schema(&parameters(plan, &tool.function.sig), "input");
    let handler = if tool.blocking { blocking(plan, tool) } else { handler(plan, tool) };
    let cfgs = cfgs(tool.function);

    quote_spanned! {Span::mixed_site()=>
        #cfgs
        #[allow(non_camel_case_types)]
        struct #wrapper(__Bound);

        #cfgs
        impl #wrapper {
            const DESCRIPTOR: __goondan::ToolDescriptor =
                __goondan::ToolDescriptor::new(#name, &Self::parameters)
                    .description(#description)
                    .effect(__goondan::Effect::#effect)
                    #timeout
                    #asks
                    #parallel
                    #line;

            fn parameters() -> __goondan::Value {
                #schema
            }
        }

        #cfgs
        #handler
    }
}

/// ```text
/// impl ToolHandler for __tool_status {
///     fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
///         Box::pin(async move {
///             let bound = &self.0;
///             let slots = ToolSlots::all();
///             let (p0, slots) = slots.take::<StatusInput, _>();
///             let (p1, slots) = slots.take::<&ToolContext<'_>, _>();
///             let mut inputs = ToolInputs::new(ctx, input, &bound.api);
///             IntoToolOutput::into_reply(
///                 <Window>::status(&bound.this, p0(&mut inputs)?, p1(&mut inputs)?).await,
///                 Some(ctx),
///             )
///         })
///     }
/// }
/// ```
fn handler(plan: &Plan<'_>, tool: &Tool<'_>) -> TokenStream {
    let sig = &tool.function.sig;
    let (slots, parameters) = (slots(tool), parameters(plan, sig));
    let take_slots = take_slots(&parameters, 1);
    let call = awaited_call(plan, sig, &read_values(&parameters));
    let ctx = quote_spanned!(Span::mixed_site()=> __goondan::Option::Some(ctx));
    let outcome = quote_spanned!(return_span(sig)=> __goondan::params::IntoToolOutput::into_reply(#call, #ctx));
    let body = quote_spanned! {Span::mixed_site()=>
        let bound = &self.0;
        let slots = #slots;
        #take_slots
        let mut inputs = __goondan::params::ToolInputs::new(ctx, input, &bound.api);
        #outcome
    };
    let future = quote_spanned!(mixed_site_at(&sig.ident)=> __goondan::Box::pin(async move { #body }));

    implementation(plan, tool, &future)
}

/// The same `impl` for a function under `#[tool(blocking)]`, with another body:
/// ```text
///         let bound = Clone::clone(&self.0);
///         Box::pin(run_blocking("window__scan", move || {
///             let slots = ToolSlots::blocking();
///             let (p0, slots) = slots.take::<ScanInput, _>();
///             let mut inputs = ToolInputs::blocking(input, &bound.api);
///             IntoToolOutput::into_reply(<Window>::scan(&bound.this, p0(&mut inputs)?), None)
///         }))
/// ```
fn blocking(plan: &Plan<'_>, tool: &Tool<'_>) -> TokenStream {
    let (sig, name) = (&tool.function.sig, &tool.name);
    let (slots, parameters) = (slots(tool), parameters(plan, sig));
    let take_slots = take_slots(&parameters, 1);
    let call = awaited_call(plan, sig, &read_values(&parameters));
    let none = quote_spanned!(Span::mixed_site()=> __goondan::Option::None);
    let outcome = quote_spanned!(return_span(sig)=> __goondan::params::IntoToolOutput::into_reply(#call, #none));

    let future = quote_spanned! {Span::mixed_site()=>
        let bound = __goondan::Clone::clone(&self.0);
        __goondan::Box::pin(__goondan::params::run_blocking(#name, move || {
            let slots = #slots;
            #take_slots
            let mut inputs = __goondan::params::ToolInputs::blocking(input, &bound.api);
            #outcome
        }))
    };
    implementation(plan, tool, &future)
}

/// The `impl` around the future that answers a call.
fn implementation(plan: &Plan<'_>, tool: &Tool<'_>, future: &TokenStream) -> TokenStream {
    let (wrapper, presenter) = (wrapper("tool", &tool.function.sig), presenter(plan, tool));
    quote_spanned! {Span::mixed_site()=>
        #[automatically_derived]
        impl __goondan::ToolHandler for #wrapper {
            #[allow(unused_mut, unused_variables)]
            fn call<'a>(
                &'a self,
                ctx: &'a __goondan::ToolContext<'_>,
                input: __goondan::Value,
            ) -> __goondan::BoxFuture<'a, __goondan::Result<__goondan::ToolReply>> {
                #future
            }

            #presenter
        }
    }
}

/// ```text
/// fn presenter(&self) -> Option<&dyn Presenter> {
///     Some(&present_status)
/// }
/// ```
/// In place of a function it is a `LineTemplate`, a constant.
fn presenter(plan: &Plan<'_>, tool: &Tool<'_>) -> Option<TokenStream> {
    let (presenter, at) = match tool.present.as_ref()? {
        Present::Line(line) => {
            (quote_spanned!(Span::mixed_site()=> const { __goondan::LineTemplate::new(#line) }), Span::mixed_site())
        }
        Present::Function(function) => (of_type(plan, function), mixed_site_at(function)),
    };
    let presenter = quote_spanned!(at=> __goondan::Option::Some(&#presenter));
    Some(quote_spanned! {Span::mixed_site()=>
        fn presenter(&self) -> __goondan::Option<&dyn __goondan::Presenter> {
            #presenter
        }
    })
}

/// Returns the path to a function, with the type of the extension in place of `Self`.
fn of_type(plan: &Plan<'_>, path: &TokenStream) -> TokenStream {
    let this = self_type(plan.block);
    let tokens = path.clone().into_iter().map(|token| match &token {
        TokenTree::Ident(ident) if ident == "Self" => quote_spanned!(ident.span()=> <#this>),
        _ => token.into(),
    });
    tokens.collect()
}

fn slots(tool: &Tool<'_>) -> TokenStream {
    let slots = format_ident!("{}", if tool.blocking { "blocking" } else { "all" }, span = Span::mixed_site());
    quote_spanned!(Span::mixed_site()=> __goondan::params::ToolSlots::#slots())
}

/// ```text
/// api.tools().register(tool_item(&__tool_status::DESCRIPTOR)?, __tool_status(Clone::clone(&bound)))?;
/// ```
pub(super) fn registration(tool: &Tool<'_>) -> TokenStream {
    let wrapper = wrapper("tool", &tool.function.sig);
    let cfgs = cfgs(tool.function);
    quote_spanned! {Span::mixed_site()=>
        #cfgs
        api.tools().register(
            __goondan::params::tool_item(&#wrapper::DESCRIPTOR)?,
            #wrapper(__goondan::Clone::clone(&bound)),
        )?;
    }
}
