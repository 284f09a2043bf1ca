//! Owns the expansion: what an extension becomes. One `quote!` for each thing, reading as the final code.
//!
//! ```text
//! #[goondan::extension(name = "window")]      impl Window { … }             // block
//! impl Window { … }                        →  const _: () = {
//!                                                 use ::goondan::__private as __goondan;
//!                                                 static __DESCRIPTOR: …           // descriptor
//!                                                 impl Extension for Window { … }
//!                                                 fn __register(…) { … }           // register
//!                                                 fn __config_schema() { … }
//!                                                 struct __layer_trim(Arc<Window>);  // middleware
//!                                                 static RECORD: [u8; …]       // record
//!                                             };
//! ```
//! Everything is named through the one import of `paths`. Our own tokens are of mixed site: they are no code of the
//! user's to lints, to `#![forbid(unsafe_code)]` and to local variables.

mod block;
mod descriptor;
mod middleware;
mod record;
mod register;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{FnArg, ReturnType, Signature, Type};

use crate::check::Plan;
use crate::model::{Item, Model};
use crate::paths;

/// The item and everything that makes it an extension.
pub(crate) fn extension(plan: &Plan<'_>) -> TokenStream {
    let block = block::block(plan.block);
    // The conditions that the block stands under hold for what belongs to it.
    let conditions = plan.block.header.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    let middlewares = plan.middlewares.iter().map(|layer| middleware::middleware(plan, layer));
    let import = paths::import(plan.facade.as_ref());
    let register = register::register(plan);
    let config_schema = register::config_schema(plan);
    let descriptor = descriptor::descriptor(plan);
    let record = record::record(plan);
    quote_spanned! {Span::mixed_site()=>
        #block

        #(#conditions)*
        const _: () = {
            #import
            // First, because an error in what the whole extension must be should be read before those that follow from it.
            #descriptor
            #register
            #config_schema
            #(#middlewares)*
            #record
        };
    }
}

/// The item without our attributes. It stays an extension to whoever asks for one, so that only its faults are errors.
pub(crate) fn harmless(model: &Model) -> TokenStream {
    let block = match &model.item {
        Item::Impl(block) => block,
        Item::Other(_, tokens) => return tokens.clone(),
    };
    let (cleaned, this) = (block::block(block), &block.header.self_ty);
    if block.header.trait_.is_some() || !block.header.generics.params.is_empty() {
        return cleaned;
    }
    let goondan = paths::private_as_written(&model.args);
    quote_spanned! {Span::mixed_site()=>
        #cleaned

        #[automatically_derived]
        impl #goondan::Extension for #this {
            const DESCRIPTOR: &'static #goondan::ExtensionDescriptor = #goondan::unreachable!();
        }
    }
}

/// An item in which something is wrong, and what.
pub(crate) fn refused(mut item: TokenStream, faults: &syn::Error) -> TokenStream {
    item.extend(faults.to_compile_error());
    item
}

/// A span that shows errors at `tokens` and is ours in every other way.
fn ours_at(tokens: &impl ToTokens) -> Span {
    tokens.span().resolved_at(Span::mixed_site())
}

/// Where errors about what a function returns belong.
fn returned(sig: &Signature) -> Span {
    match &sig.output {
        ReturnType::Type(_, ty) => ours_at(ty),
        ReturnType::Default => ours_at(&sig.ident),
    }
}

/// The types of the parameters, without `self`, each with a name for its value.
fn parameters<'a>(plan: &Plan<'_>, sig: &'a Signature) -> Vec<(Ident, &'a Type, TokenStream)> {
    let types = sig.inputs.iter().filter_map(|arg| match arg {
        FnArg::Typed(arg) => Some(&*arg.ty),
        FnArg::Receiver(_) => None,
    });
    let this = &*plan.block.header.self_ty;
    types
        .enumerate()
        .map(|(index, ty)| {
            (format_ident!("p{index}", span = Span::mixed_site()), ty, outside(ty.to_token_stream(), this))
        })
        .collect()
}

/// The type as it is written outside the `impl` block: `Self` has no meaning there.
fn outside(ty: TokenStream, this: &Type) -> TokenStream {
    ty.into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(word) if word == "Self" => this.to_token_stream(),
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), outside(group.stream(), this));
                inside.set_span(group.span());
                TokenTree::from(inside).into()
            }
            token => token.into(),
        })
        .collect()
}

/// The name of the struct that makes `function` a middleware.
fn wrapper(sig: &Signature) -> Ident {
    format_ident!("__layer_{}", sig.ident.unraw(), span = ours_at(&sig.ident))
}
