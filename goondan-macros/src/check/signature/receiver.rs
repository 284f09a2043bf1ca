//! Owns the rules for `self`.

use syn::ReceiverKind;

use super::Case;
use crate::check::words::written;
use crate::fault::Faults;

/// Runs of several turns share the extension, so its functions get it by shared reference.
pub(super) fn borrows_self(case: &Case<'_>, faults: &mut Faults) {
    let sig = &case.function.sig;
    match sig.receiver() {
        None => case.fault(faults, &sig.ident, "must take the extension; add `&self` as its first parameter"),
        Some(receiver) => {
            if !matches!(receiver.kind, ReceiverKind::Reference(_, None, None)) {
                let written = written(receiver);
                case.fault(faults, receiver, &format!("must take `&self`; write it in the place of `{written}`"));
            }
        }
    }
}

/// There is no extension before the initializer has made it.
pub(super) fn has_no_receiver_yet(case: &Case<'_>, faults: &mut Faults) {
    if let Some(receiver) = case.function.sig.receiver() {
        case.fault(faults, receiver, "must not take `self`; remove it: this function makes the extension");
    }
}

/// A module is no type.
pub(super) fn has_no_receiver_in_a_module(case: &Case<'_>, faults: &mut Faults) {
    if let Some(receiver) = case.function.sig.receiver() {
        let message =
            "must not take `self`; remove it, or write the extension as an `impl` block: a module has no instance";
        case.fault(faults, receiver, message);
    }
}
