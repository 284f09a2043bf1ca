//! Owns what the functions of an extension share in the expansion.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use super::this;
use crate::check::Plan;

/// ```text
/// struct __Bound { this: Arc<Window>, api: ExtensionApi }
///
/// impl Clone for __Bound { … }
/// ```
/// In a module, which has no instance, without `this`.
pub(super) fn bound(plan: &Plan<'_>) -> TokenStream {
    let this = this(plan.block);
    let (field, copy) = match plan.block.is_module() {
        true => (TokenStream::new(), TokenStream::new()),
        false => (
            quote_spanned!(Span::mixed_site()=> this: __goondan::Arc<#this>,),
            quote_spanned!(Span::mixed_site()=> this: __goondan::Clone::clone(&self.this),),
        ),
    };
    quote_spanned! {Span::mixed_site()=>
        // An extension whose functions ask for no handle leaves it unread.
        #[allow(dead_code)]
        struct __Bound {
            #field
            api: __goondan::ExtensionApi,
        }

        #[automatically_derived]
        impl __goondan::Clone for __Bound {
            fn clone(&self) -> Self {
                Self { #copy api: __goondan::Clone::clone(&self.api) }
            }
        }
    }
}
