//! Owns the names of crates in expansions: whatever an expansion needs, the standard library included, it finds behind
//! one absolute path in the facade, so that no import, shadowing or missing prelude of the user's crate reaches it.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::Path;

use crate::attr::{Arg, Args};

/// Makes that path `__goondan` in the scope of an expansion. As an import, a path that leads nowhere is one error.
pub(crate) fn import(facade: Option<&Path>) -> TokenStream {
    let private = private(facade);
    quote_spanned!(Span::mixed_site()=> use #private as __goondan;)
}

/// The path as the arguments say it, for an item that was refused, perhaps because of them.
pub(crate) fn private_as_written(args: &Args) -> TokenStream {
    private(args.get("crate").and_then(Arg::path).as_ref())
}

fn private(facade: Option<&Path>) -> TokenStream {
    let span = Span::mixed_site();
    match facade {
        Some(path) => quote_spanned!(span=> #path::__private),
        None => quote_spanned!(span=> ::goondan::__private),
    }
}
