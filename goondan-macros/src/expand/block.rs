//! Owns the user's `impl` block in the expansion: as it was written, without our attributes.

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

use crate::model::{Block, Function, Member, Role};

pub(super) fn block(block: &Block) -> TokenStream {
    let members = block.members.iter().map(|member| match member {
        Member::Function(function) => self::function(function),
        Member::Other(_, tokens) => tokens.clone(),
    });
    let mut body = Group::new(Delimiter::Brace, members.collect());
    body.set_span(block.brace);
    let mut tokens = block.head.clone();
    body.to_tokens(&mut tokens);
    tokens
}

fn function(Function { attrs, helpers, vis, sig, body }: &Function) -> TokenStream {
    // What the roles demand of a signature must not be held against it.
    let allowed = match helpers.first().map(|helper| helper.role) {
        Some(Role::Init) => quote_spanned!(Span::mixed_site()=> #[allow(clippy::needless_pass_by_value)]),
        Some(Role::Middleware) => {
            quote_spanned!(Span::mixed_site()=> #[allow(clippy::unused_async, clippy::unused_self)])
        }
        _ => TokenStream::new(),
    };
    quote!(#(#attrs)* #allowed #vis #sig #body)
}
