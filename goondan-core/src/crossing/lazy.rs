//! A field that is read from the host on first use.

use std::fmt;
use std::sync::OnceLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::remote::{RemoteResult, unwritable};
use crate::error::Result;

/// One field of a result.
#[derive(Clone)]
pub(crate) struct Lazy<T> {
    name: &'static str,
    state: LazyState<T>,
}

#[derive(Clone)]
enum LazyState<T> {
    /// The host has the value; the cell caches it once it was read.
    Unread(OnceLock<T>),
    /// Made or changed in this binary.
    Ready(T),
}

impl<T> From<T> for Lazy<T> {
    fn from(value: T) -> Self {
        Self { name: "", state: LazyState::Ready(value) }
    }
}

impl<T: DeserializeOwned> Lazy<T> {
    /// The field `name` of a result that the host keeps.
    pub(crate) fn unread(name: &'static str) -> Self {
        Self { name, state: LazyState::Unread(OnceLock::new()) }
    }

    /// Reads the value from the host.
    ///
    /// # Panics
    /// When the host breaks the contract. There is no value to continue with, and the panic stops at the border of the
    /// extension.
    #[expect(clippy::panic, reason = "see above")]
    fn read(&self, origin: Option<&RemoteResult>) -> T {
        let Some(remote) = origin else { panic!("a result without its field `{}`", self.name) };
        let read = remote.read(self.name).and_then(|json| Ok(serde_json::from_slice(&json)?));
        read.unwrap_or_else(|error| panic!("the host gave no `{}`: {error}", self.name))
    }

    /// Returns the value.
    ///
    /// # Panics
    /// As [`Lazy::read`].
    pub(crate) fn get(&self, origin: Option<&RemoteResult>) -> &T {
        match &self.state {
            LazyState::Ready(value) => value,
            LazyState::Unread(cache) => cache.get_or_init(|| self.read(origin)),
        }
    }

    /// Returns the value, to change it.
    ///
    /// # Panics
    /// As [`Lazy::read`].
    #[expect(clippy::unreachable, reason = "the value has just been set")]
    pub(crate) fn get_mut(&mut self, origin: Option<&RemoteResult>) -> &mut T {
        if let LazyState::Unread(cache) = &mut self.state {
            let cached = cache.take();
            self.set(cached.unwrap_or_else(|| self.read(origin)));
        }
        match &mut self.state {
            LazyState::Ready(value) => value,
            LazyState::Unread(_) => unreachable!("the value is set"),
        }
    }

    pub(crate) fn set(&mut self, value: T) {
        self.state = LazyState::Ready(value);
    }

    /// Returns a field with the value that `json` holds.
    pub(crate) fn parse(json: Value) -> Result<Self> {
        Ok(Self::from(serde_json::from_value::<T>(json)?))
    }

    /// Replaces the value by the one that `json` holds.
    pub(crate) fn parse_into(&mut self, json: &[u8]) -> Result<()> {
        self.set(serde_json::from_slice::<T>(json)?);
        Ok(())
    }
}

impl<T: Serialize + DeserializeOwned> Lazy<T> {
    /// Writes the value to the host if it was changed.
    pub(crate) fn flush(&self, origin: &RemoteResult) -> Result<()> {
        match &self.state {
            LazyState::Ready(value) => origin.write(self.name, &serde_json::to_vec(value).map_err(unwritable)?),
            LazyState::Unread(_) => Ok(()),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match &self.state {
            LazyState::Ready(value) => Some(value),
            LazyState::Unread(cache) => cache.get(),
        };
        match value {
            Some(value) => value.fmt(f),
            None => f.write_str("(not read yet)"),
        }
    }
}
