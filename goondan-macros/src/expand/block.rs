//! Owns the user's item in the expansion: as it was written, without our attributes, and with what belongs to it.

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

use super::tokens::ours_at;
use crate::model::{Block, Form, Function, Member, Role};

/// The item with `more` beside an `impl` block, or in a module, where private functions can be called.
pub(super) fn with(block: &Block, more: TokenStream) -> TokenStream {
    match &block.form {
        Form::Impl(header) => {
            let block = item(block, TokenStream::new());
            // The conditions that the block stands under hold for what belongs to it.
            let conditions = header.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
            let conditions = if more.is_empty() { quote!() } else { quote!(#(#conditions)*) };
            quote!(#block #conditions #more)
        }
        Form::Module(header) => {
            let doc = format!("The extension `{}`, to be named where a type is asked for.", block.name());
            item(
                block,
                quote_spanned! {ours_at(&header.ident)=>
                    #[doc = #doc]
                    pub enum Extension {}

                    #more
                },
            )
        }
    }
}

fn item(block: &Block, more: TokenStream) -> TokenStream {
    let inner = &block.inner;
    let members = block.members.iter().map(|member| match member {
        // It was refused for its `self`. As a method it is no fault to the compiler, too.
        Member::Function(method)
            if block.is_module() && method.helper().is_some() && method.sig.receiver().is_some() =>
        {
            let method = function(method);
            quote_spanned!(Span::mixed_site()=> #[allow(dead_code)] impl Extension { #method })
        }
        Member::Function(function) => self::function(function),
        Member::Other(_, tokens) => tokens.clone(),
    });
    let mut body = Group::new(Delimiter::Brace, quote!(#(#inner)* #(#members)* #more));
    body.set_span(block.brace);
    let mut tokens = block.head.clone();
    body.to_tokens(&mut tokens);
    tokens
}

/// What the role demands of a signature must not be held against it.
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
