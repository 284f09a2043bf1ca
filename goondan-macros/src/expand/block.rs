//! The user's item in the expansion: unchanged but for the helper attributes, together with the generated code.

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

use super::tokens::mixed_site_at;
use crate::model::{Block, Form, Function, Member, Role};

/// The item with `generated` after an `impl` block, or inside a module, where private functions can be called.
pub(super) fn with(block: &Block, generated: TokenStream) -> TokenStream {
    match &block.form {
        Form::Impl(header) => {
            let block = item(block, TokenStream::new());
            // Where the block is compiled out, so is the generated code.
            let cfgs = header.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
            let cfgs = if generated.is_empty() { quote!() } else { quote!(#(#cfgs)*) };
            quote!(#block #cfgs #generated)
        }
        Form::Module(header) => {
            let doc = format!("The extension `{}` as a type. It has no values.", block.name());
            item(
                block,
                quote_spanned! {mixed_site_at(&header.ident)=>
                    #[doc = #doc]
                    pub enum Extension {}

                    #generated
                },
            )
        }
    }
}

fn item(block: &Block, generated: TokenStream) -> TokenStream {
    let inner = &block.inner;
    let members = block.members.iter().map(|member| match member {
        // `check` rejects `self` in a module. As a method it is valid Rust, so the compiler adds no second error.
        Member::Function(method)
            if block.is_module() && method.helper().is_some() && method.sig.receiver().is_some() =>
        {
            let method = function(method);
            quote_spanned!(Span::mixed_site()=> #[allow(dead_code)] impl Extension { #method })
        }
        Member::Function(function) => self::function(function),
        Member::Other(_, tokens) => tokens.clone(),
    });
    let mut body = Group::new(Delimiter::Brace, quote!(#(#inner)* #(#members)* #generated));
    body.set_span(block.brace);
    let mut tokens = block.head.clone();
    body.to_tokens(&mut tokens);
    tokens
}

/// The function, with lints allowed that its role makes it violate.
fn function(Function { attrs, helpers, vis, sig, body }: &Function) -> TokenStream {
    let span = Span::mixed_site();
    let allowed = match helpers.first().map(|helper| helper.role) {
        None => TokenStream::new(),
        Some(Role::Init) => quote_spanned!(span=> #[allow(clippy::needless_pass_by_value)]),
        Some(Role::Tool) => quote_spanned! {span=>
            #[allow(clippy::needless_pass_by_value, clippy::unnecessary_wraps, clippy::unused_async, clippy::unused_self)]
        },
        Some(Role::Middleware | Role::On | Role::Cleanup) => {
            quote_spanned!(span=> #[allow(clippy::unused_async, clippy::unused_self)])
        }
    };
    quote!(#(#attrs)* #allowed #vis #sig #body)
}
