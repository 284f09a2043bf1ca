//! Owns what the attributes of functions say where no extension is around them.

use proc_macro2::{Span, TokenStream};

use crate::expand;

/// The item as it is, and what is missing. Inside of an extension, `#[extension]` takes the attributes off before they
/// could come here.
pub(crate) fn outside(attribute: &str, item: TokenStream) -> TokenStream {
    let message = format!(
        "`#[{attribute}]` must be inside of an extension; put `#[goondan::extension(name = \"…\")]` on the `impl` block, \
         or the module, that holds the function"
    );
    expand::refused(item, &syn::Error::new(Span::call_site(), message))
}
