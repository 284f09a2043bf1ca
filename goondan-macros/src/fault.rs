//! Owns the collector of faults: everything that is wrong with one item is reported at once.

use std::fmt::Display;

use proc_macro2::Span;
use quote::ToTokens;

/// The faults of one item. Whoever makes one ends it with [`Faults::finish`]; forgetting that would lose them.
pub(crate) struct Faults {
    /// `None` once finished.
    found: Option<Vec<syn::Error>>,
}

impl Faults {
    pub(crate) fn new() -> Self {
        Self { found: Some(Vec::new()) }
    }

    /// Notes a fault at the wrong tokens.
    pub(crate) fn at(&mut self, wrong: impl ToTokens, message: impl Display) {
        self.found.get_or_insert_default().push(syn::Error::new_spanned(wrong, message));
    }

    /// Notes that something is missing in the arguments of the attribute itself.
    pub(crate) fn at_the_attribute(&mut self, message: impl Display) {
        self.found.get_or_insert_default().push(syn::Error::new(Span::call_site(), message));
    }

    /// The value, if nothing was wrong. Rules that give nothing note why, so `None` without a fault cannot come.
    pub(crate) fn finish<T>(mut self, value: Option<T>) -> syn::Result<T> {
        let all = self.found.take().into_iter().flatten().reduce(|mut all, fault| {
            all.combine(fault);
            all
        });
        match (all, value) {
            (None, Some(value)) => Ok(value),
            (Some(all), _) => Err(all),
            (None, None) => Err(syn::Error::new(Span::call_site(), "a rule of `#[extension]` gave no reason")),
        }
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        debug_assert!(self.found.is_none() || std::thread::panicking(), "faults were collected and not reported");
    }
}
