//! Paths of crates in expansions. Everything that an expansion names, the standard library included, is found through
//! one absolute path into the facade, so that imports, shadowing or a missing prelude in the user's crate cannot
//! interfere.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::Path;

use crate::attr::{Arg, Args};

/// Imports `<facade>::__private` as `__goondan`. Because it is one import, a path that does not resolve is one error.
pub(crate) fn import(facade: Option<&Path>) -> TokenStream {
    let private = private(facade);
    quote_spanned!(Span::mixed_site()=> use #private as __goondan;)
}

/// `<facade>::__private` from unchecked arguments, for an item that was rejected, possibly because of them.
pub(crate) fn private_from_args(args: &Args) -> TokenStream {
    private(args.get("crate").and_then(Arg::path).as_ref())
}

fn private(facade: Option<&Path>) -> TokenStream {
    let span = Span::mixed_site();
    match facade {
        Some(path) => quote_spanned!(span=> #path::__private),
        None => quote_spanned!(span=> ::goondan::__private),
    }
}
