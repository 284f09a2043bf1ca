//! Code generation: the expansion of a checked extension. Each generated item is one `quote!` that reads as the final
//! code.
//!
//! ```text
//! #[goondan::extension(name = "window")]      impl Window { … }             // block
//! impl Window { … }                        →  const _: () = {
//!                                                 use ::goondan::__private as __goondan;
//!                                                 static __DESCRIPTOR: …           // descriptor
//!                                                 impl Extension for Window { … }
//!                                                 struct __Bound { … }         // bound
//!                                                 fn __register(…) { … }           // register
//!                                                 fn __config_schema() { … }
//!                                                 struct __layer_trim(__Bound);  // middleware
//!                                                 struct __tool_status(__Bound);  // tool
//!                                                 struct __on_count(__Bound);  // subscription
//!                                                 struct __cleanup_close(__Bound);  // cleanup
//!                                                 static RECORD: [u8; …]       // record
//!                                             };
//!
//! #[goondan::extension(name = "hello")]       mod hello {
//! mod hello { … }                          →      …
//!                                                 pub enum Extension {}
//!                                                 const _: () = { … };         // the same, for `Extension`
//!                                             }
//! ```
//! All names go through the one import that `paths` generates. Generated tokens have mixed-site spans: lints and
//! `#![forbid(unsafe_code)]` do not treat them as the user's code, and local variables of the two cannot clash.

mod block;
mod bound;
mod cleanup;
mod descriptor;
mod middleware;
mod record;
mod register;
mod subscription;
#[cfg(test)]
mod tests;
mod tokens;
mod tool;

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use self::tokens::self_type;
use crate::check::{Plan, Registration};
use crate::model::{Form, Item, Model};
use crate::paths;

/// The item, and the generated code that makes it an extension.
pub(crate) fn extension(plan: &Plan<'_>) -> TokenStream {
    let import = paths::import(plan.facade.as_ref());
    let register = register::register(plan);
    let config_schema = register::config_schema(plan);
    let descriptor = descriptor::descriptor(plan);
    let bound = bound::bound(plan);
    let handlers = plan.registrations.iter().map(|registration| match registration {
        Registration::Middleware(middleware) => middleware::middleware(plan, middleware),
        Registration::Tool(tool) => tool::tool(plan, tool),
        Registration::Subscription(subscription) => subscription::subscription(plan, subscription),
        Registration::Cleanup(function) => cleanup::cleanup(plan, function),
    });
    let record = record::record(plan);
    block::with(
        plan.block,
        quote_spanned! {Span::mixed_site()=>
            const _: () = {
                #import
                // First, so that errors about the extension as a whole come before the errors that they cause.
                #descriptor
                #bound
                #register
                #config_schema
                #(#handlers)*
                #record
            };
        },
    )
}

/// A rejected item without the helper attributes. It still implements `Extension`, so that code that uses it as one
/// causes no further errors.
pub(crate) fn stub(model: &Model) -> TokenStream {
    let block = match &model.item {
        Item::Block(block) => block,
        Item::Other(_, tokens) => return tokens.clone(),
    };
    if let Form::Impl(header) = &block.form
        && (header.trait_.is_some() || !header.generics.params.is_empty())
    {
        return block::with(block, TokenStream::new());
    }
    let (this, goondan) = (self_type(block), paths::private_from_args(&model.args));
    block::with(
        block,
        quote_spanned! {Span::mixed_site()=>
            #[automatically_derived]
            impl #goondan::Extension for #this {
                const DESCRIPTOR: &'static #goondan::ExtensionDescriptor = #goondan::unreachable!();
            }
        },
    )
}

/// The item, followed by a `compile_error!` for each error.
pub(crate) fn with_errors(mut item: TokenStream, errors: &syn::Error) -> TokenStream {
    item.extend(errors.to_compile_error());
    item
}
