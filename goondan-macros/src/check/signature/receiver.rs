//! Rules for `self`.

use syn::ReceiverKind;

use super::Candidate;
use crate::check::words::source_text;
use crate::errors::Errors;

/// Calls can run concurrently and share the extension, so its functions take a shared reference.
pub(super) fn borrows_self(candidate: &Candidate<'_>, errors: &mut Errors) {
    let sig = &candidate.function.sig;
    match sig.receiver() {
        None => candidate.error(errors, &sig.ident, "must take the extension; add `&self` as its first parameter"),
        Some(receiver) => {
            if !matches!(receiver.kind, ReceiverKind::Reference(_, None, None)) {
                let text = source_text(receiver);
                candidate.error(errors, receiver, &format!("must take `&self`; write it instead of `{text}`"));
            }
        }
    }
}

/// `#[init]` makes the extension, so there is none to take.
pub(super) fn has_no_receiver(candidate: &Candidate<'_>, errors: &mut Errors) {
    if let Some(receiver) = candidate.function.sig.receiver() {
        candidate.error(errors, receiver, "must not take `self`; remove it: this function makes the extension");
    }
}

/// A module is not a type.
pub(super) fn has_no_receiver_in_a_module(candidate: &Candidate<'_>, errors: &mut Errors) {
    if let Some(receiver) = candidate.function.sig.receiver() {
        let message =
            "must not take `self`; remove it, or write the extension as an `impl` block: a module has no instance";
        candidate.error(errors, receiver, message);
    }
}
