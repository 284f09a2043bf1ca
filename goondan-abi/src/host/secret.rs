//! The functions `secret_…`: secrets that a library makes while it runs are masked by this program too.

use std::ffi::c_void;
use std::ptr;

use goondan_core::Secret;

use crate::panic::catch_or_log;
use crate::table::Text;

pub(super) unsafe extern "C" fn remember(text: Text) -> *mut c_void {
    // SAFETY: The contract makes the text valid for this call.
    let text = unsafe { text.str() };
    let remembered = catch_or_log("a secret", || Box::into_raw(Box::new(Secret::new(text))).cast());
    remembered.unwrap_or(ptr::null_mut())
}

pub(super) unsafe extern "C" fn forget(secret: *mut c_void) {
    if secret.is_null() {
        return;
    }
    // SAFETY: The contract requires a pointer of `remember`, which leaked the box, and its ownership.
    let secret = unsafe { Box::from_raw(secret.cast::<Secret>()) };
    catch_or_log("forgetting a secret", || drop(secret));
}
