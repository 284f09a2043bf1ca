//! Reports attributes of functions that are used outside an extension.

use proc_macro2::{Span, TokenStream};

use crate::expand;

/// Returns the unchanged item and the error. Inside an extension this never runs: `#[extension]` is expanded first, and
/// removes the attributes.
pub(crate) fn attribute(name: &str, item: TokenStream) -> TokenStream {
    let message = format!(
        "`#[{name}]` must be inside of an extension; put `#[goondan::extension(name = \"…\")]` on the `impl` block, or \
         the module, that holds the function"
    );
    expand::with_errors(item, &syn::Error::new(Span::call_site(), message))
}
