//! Generates the descriptor: static data that describes the extension before it runs.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use super::middleware;
use super::tokens::{cfgs, self_type, wrapper};
use crate::attr::doc_comment;
use crate::check::{Middleware, Plan, Subscription};

/// ```text
/// static __DESCRIPTOR: ExtensionDescriptor =
///     ExtensionDescriptor::new("message-window", &__config_schema, &__register).description(…);
///
/// impl Extension for Window {
///     const DESCRIPTOR: &'static ExtensionDescriptor = &__DESCRIPTOR;
/// }
///
/// inventory::submit! { LinkedExtension::new(&__DESCRIPTOR) }
/// ```
pub(super) fn descriptor(plan: &Plan<'_>) -> TokenStream {
    let (name, requires, guard, this) = (&plan.name, &plan.requires, plan.guard, self_type(plan.block));
    let description = doc_comment(plan.block.attrs().iter().chain(&plan.block.inner));
    let middlewares = plan.middlewares().map(|middleware| {
        let Middleware { function, priority, before, after, .. } = middleware;
        let (kind, cfgs, function) = (middleware::kind(middleware), cfgs(function), function.name());
        quote_spanned! {Span::mixed_site()=>
            #cfgs
            __goondan::MiddlewareDescriptor::new(__goondan::MiddlewareKind::#kind, #function)
                .priority(#priority)
                .before(&[#(#before),*])
                .after(&[#(#after),*])
        }
    });
    let tools = plan.tools().map(|tool| {
        let (cfgs, wrapper) = (cfgs(tool.function), wrapper("tool", &tool.function.sig));
        quote_spanned!(Span::mixed_site()=> #cfgs #wrapper::DESCRIPTOR)
    });
    let patterns = plan.subscriptions().map(|Subscription { function, pattern }| {
        let cfgs = cfgs(function);
        quote_spanned!(Span::mixed_site()=> #cfgs #pattern)
    });
    quote_spanned! {Span::mixed_site()=>
        static __DESCRIPTOR: __goondan::ExtensionDescriptor =
            __goondan::ExtensionDescriptor::new(#name, &__config_schema, &__register)
                .description(#description)
                .package(__goondan::env!("CARGO_PKG_NAME"), __goondan::env!("CARGO_PKG_VERSION"))
                .middlewares(&[#(#middlewares),*])
                .tools(&[#(#tools),*])
                .subscriptions(&[#(#patterns),*])
                .requires(&[#(#requires),*])
                .guard(#guard);

        #[automatically_derived]
        impl __goondan::Extension for #this {
            const DESCRIPTOR: &'static __goondan::ExtensionDescriptor = &__DESCRIPTOR;
        }

        __goondan::inventory::submit! { __goondan::LinkedExtension::new(&__DESCRIPTOR) }
    }
}
