//! Owns the descriptor in the expansion: what the program knows of the extension before it runs.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use super::middleware;
use crate::attr::doc_comment;
use crate::check::Plan;

/// ```text
/// static __DESCRIPTOR: ExtensionDescriptor = ExtensionDescriptor { name: "message-window", … };
///
/// impl Extension for Window {
///     const DESCRIPTOR: &'static ExtensionDescriptor = &__DESCRIPTOR;
/// }
///
/// inventory::submit! { LinkedExtension(&__DESCRIPTOR) }
/// ```
pub(super) fn descriptor(plan: &Plan<'_>) -> TokenStream {
    let name = &plan.name;
    let this = &plan.block.header.self_ty;
    let description = doc_comment(&plan.block.header.attrs);
    let middlewares = plan.middlewares.iter().map(|layer| {
        let (kind, function, priority) = (middleware::kind(layer), layer.function.name(), layer.priority);
        quote_spanned! {Span::mixed_site()=>
            __goondan::MiddlewareDescriptor {
                kind: __goondan::MiddlewareKind::#kind,
                function: #function,
                priority: #priority,
            }
        }
    });
    quote_spanned! {Span::mixed_site()=>
        static __DESCRIPTOR: __goondan::ExtensionDescriptor = __goondan::ExtensionDescriptor {
            name: #name,
            description: #description,
            package: __goondan::env!("CARGO_PKG_NAME"),
            version: __goondan::env!("CARGO_PKG_VERSION"),
            api_version: __goondan::API_VERSION,
            middlewares: &[#(#middlewares),*],
            config_schema: __config_schema,
            register: __register,
        };

        #[automatically_derived]
        impl __goondan::Extension for #this {
            const DESCRIPTOR: &'static __goondan::ExtensionDescriptor = &__DESCRIPTOR;
        }

        __goondan::inventory::submit! { __goondan::LinkedExtension(&__DESCRIPTOR) }
    }
}
