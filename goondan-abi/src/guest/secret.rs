//! Has the secrets of this library masked by the host.

use goondan_core::linkage::{SecretHost, set_secret_host};

use super::host;
use crate::table::Text;

/// The functions `secret_…` of the host. The number of a secret is the address that the host returned.
struct HostSecrets;

/// From here, secrets that the library makes are masked by the host too.
pub(super) fn install() {
    set_secret_host(&HostSecrets);
}

impl SecretHost for HostSecrets {
    fn remember(&self, text: &str) -> usize {
        // SAFETY: The text is borrowed for the call.
        unsafe { (host().secret_remember)(Text::new(text.as_bytes())) }.expose_provenance()
    }

    fn forget(&self, secret: usize) {
        // SAFETY: `remember` returned the number, and nothing has forgotten it.
        unsafe { (host().secret_forget)(std::ptr::with_exposed_provenance_mut(secret)) };
    }
}
