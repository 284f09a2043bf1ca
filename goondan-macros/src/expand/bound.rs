//! The generated struct `__Bound`: what every registered function of one extension shares.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use super::tokens::self_type;
use crate::check::Plan;

/// ```text
/// struct __Bound { this: Arc<Window>, api: ExtensionApi }
///
/// impl Clone for __Bound { … }
/// ```
/// In a module, which has no value, there is no field `this`.
pub(super) fn bound(plan: &Plan<'_>) -> TokenStream {
    let this = self_type(plan.block);
    let (field, copy) = match plan.block.is_module() {
        true => (TokenStream::new(), TokenStream::new()),
        false => (
            quote_spanned!(Span::mixed_site()=> this: __goondan::Arc<#this>,),
            quote_spanned!(Span::mixed_site()=> this: __goondan::Clone::clone(&self.this),),
        ),
    };
    quote_spanned! {Span::mixed_site()=>
        // `api` is not read when no function takes the handle.
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
