//! Owns the expansion: what an extension becomes. One `quote!` for each thing, reading as the final code.
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
//! Everything is named through the one import of `paths`. Our own tokens are of mixed site: they are no code of the
//! user's to lints, to `#![forbid(unsafe_code)]` and to local variables.

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
use quote::{ToTokens, quote_spanned};

use crate::check::{Part, Plan};
use crate::model::{Block, Form, Item, Model};
use crate::paths;

/// The item and everything that makes it an extension.
pub(crate) fn extension(plan: &Plan<'_>) -> TokenStream {
    let import = paths::import(plan.facade.as_ref());
    let register = register::register(plan);
    let config_schema = register::config_schema(plan);
    let descriptor = descriptor::descriptor(plan);
    let bound = bound::bound(plan);
    let parts = plan.parts.iter().map(|part| match part {
        Part::Layer(layer) => middleware::middleware(plan, layer),
        Part::Tool(tool) => tool::tool(plan, tool),
        Part::Subscription(on) => subscription::subscription(plan, on),
        Part::Cleanup(function) => cleanup::cleanup(plan, function),
    });
    let record = record::record(plan);
    block::with(
        plan.block,
        quote_spanned! {Span::mixed_site()=>
            const _: () = {
                #import
                // First, because an error in what the whole extension must be should be read before those that follow from it.
                #descriptor
                #bound
                #register
                #config_schema
                #(#parts)*
                #record
            };
        },
    )
}

/// The item without our attributes. It stays an extension to whoever asks for one, so that only its faults are errors.
pub(crate) fn harmless(model: &Model) -> TokenStream {
    let block = match &model.item {
        Item::Block(block) => block,
        Item::Other(_, tokens) => return tokens.clone(),
    };
    if let Form::Impl(header) = &block.form
        && (header.trait_.is_some() || !header.generics.params.is_empty())
    {
        return block::with(block, TokenStream::new());
    }
    let (this, goondan) = (this(block), paths::private_as_written(&model.args));
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

/// An item in which something is wrong, and what.
pub(crate) fn refused(mut item: TokenStream, faults: &syn::Error) -> TokenStream {
    item.extend(faults.to_compile_error());
    item
}

/// The type that is the extension.
fn this(block: &Block) -> TokenStream {
    match &block.form {
        Form::Impl(header) => header.self_ty.to_token_stream(),
        Form::Module(header) => quote_spanned!(tokens::ours_at(&header.ident)=> Extension),
    }
}
