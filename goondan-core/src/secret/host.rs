//! The program that loaded this library, which masks the secrets of the library too.

use std::sync::OnceLock;
use std::thread;

static HOST: OnceLock<&'static dyn SecretHost> = OnceLock::new();

/// The program that loaded this library.
pub trait SecretHost: Send + Sync {
    /// Masks `text`, and returns the number by which it is forgotten.
    fn remember(&self, text: &str) -> usize;
    /// Ends the masking of a text.
    fn forget(&self, secret: usize);
}

/// Sets the program that loaded this library. Secrets that were made before are masked in the library alone.
pub fn set_secret_host(host: &'static dyn SecretHost) {
    _ = HOST.set(host);
}

/// A secret of a library, in the program that loaded it.
pub(super) struct InHost {
    host: &'static dyn SecretHost,
    number: usize,
}

impl InHost {
    /// Returns `None` in a program.
    pub(super) fn remember(text: &str) -> Option<Self> {
        HOST.get().map(|host| Self { host: *host, number: host.remember(text) })
    }
}

impl Drop for InHost {
    fn drop(&mut self) {
        // As for `Masked`.
        if !thread::panicking() {
            self.host.forget(self.number);
        }
    }
}
