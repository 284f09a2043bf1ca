//! Collects the compile errors of one item, so that all of them are reported at once.

use std::fmt::Display;

use proc_macro2::Span;
use quote::ToTokens;

/// The errors found in one item. Must end in [`Errors::finish`]: dropping a collector would lose what it found.
pub(crate) struct Errors {
    /// `None` once finished.
    found: Option<Vec<syn::Error>>,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { found: Some(Vec::new()) }
    }

    /// Adds an error whose span is `wrong`.
    pub(crate) fn at(&mut self, wrong: impl ToTokens, message: impl Display) {
        self.found.get_or_insert_default().push(syn::Error::new_spanned(wrong, message));
    }

    /// Adds an error about something that is missing, which therefore has no tokens: its span is the whole attribute.
    pub(crate) fn at_attribute(&mut self, message: impl Display) {
        self.found.get_or_insert_default().push(syn::Error::new(Span::call_site(), message));
    }

    /// Returns `value`, or all errors combined. A check that returns `None` has added an error, so `None` without any
    /// error is a bug of this crate.
    pub(crate) fn finish<T>(mut self, value: Option<T>) -> syn::Result<T> {
        let all = self.found.take().into_iter().flatten().reduce(|mut all, error| {
            all.combine(error);
            all
        });
        match (all, value) {
            (None, Some(value)) => Ok(value),
            (Some(all), _) => Err(all),
            (None, None) => {
                Err(syn::Error::new(Span::call_site(), "a check of `#[extension]` failed without a reason"))
            }
        }
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        debug_assert!(self.found.is_none() || std::thread::panicking(), "errors were collected and not reported");
    }
}
