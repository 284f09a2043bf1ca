//! A result that is stored in this binary, or in the host of this library.

use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;

use super::lazy::Lazy;
use super::remote::RemoteResult;

/// The fields of a result, in this binary or in the host. As small as possible, because every layer moves it.
#[derive(Debug)]
pub(crate) enum MaybeRemote<D> {
    Local(Box<D>),
    Remote(InlineOrBox<Remote<D>>),
    /// In this binary, by two results: see [`Crossing::share`].
    Shared(Arc<D>),
}

/// A result of the host, and the fields that were read or changed so far. They are allocated on first use.
#[derive(Debug)]
pub(crate) struct Remote<D> {
    pub(crate) origin: RemoteResult,
    pub(crate) data: OnceLock<Box<D>>,
}

/// Boxed in a program, where remote results are rare and must not make local ones larger.
#[cfg(feature = "program")]
type InlineOrBox<T> = Box<T>;
/// Inline in a library, where nearly all results are remote and a box would be one more allocation for each layer.
#[cfg(not(feature = "program"))]
type InlineOrBox<T> = T;

/// The default of `D` has all fields unread.
impl<D: Default + Clone> MaybeRemote<D> {
    pub(crate) fn local(data: D) -> Self {
        Self::Local(Box::new(data))
    }

    pub(crate) fn remote(origin: RemoteResult) -> Self {
        Self::Remote(InlineOrBox::from(Remote { origin, data: OnceLock::new() }))
    }

    fn parts(&self) -> (&D, Option<&RemoteResult>) {
        match self {
            Self::Local(data) => (data, None),
            Self::Remote(remote) => (remote.data.get_or_init(Box::default), Some(&remote.origin)),
            Self::Shared(data) => (data, None),
        }
    }

    #[expect(clippy::expect_used, reason = "`get_or_init` has just set it")]
    fn parts_mut(&mut self) -> (&mut D, Option<&RemoteResult>) {
        match self {
            Self::Local(data) => (data, None),
            Self::Remote(remote) => {
                remote.data.get_or_init(Box::default);
                (remote.data.get_mut().expect("the data is set"), Some(&remote.origin))
            }
            Self::Shared(data) => (Arc::make_mut(data), None),
        }
    }

    pub(crate) fn get(&self) -> &D {
        self.parts().0
    }

    pub(crate) fn get_mut(&mut self) -> &mut D {
        self.parts_mut().0
    }

    pub(crate) fn field<T: DeserializeOwned>(&self, field: impl FnOnce(&D) -> &Lazy<T>) -> &T {
        let (data, origin) = self.parts();
        field(data).get(origin)
    }

    pub(crate) fn field_mut<T: DeserializeOwned>(&mut self, field: impl FnOnce(&mut D) -> &mut Lazy<T>) -> &mut T {
        let (data, origin) = self.parts_mut();
        field(data).get_mut(origin)
    }

    pub(crate) fn into_box(self) -> Box<D> {
        match self {
            Self::Local(data) => data,
            Self::Remote(remote) => remote.data.into_inner().unwrap_or_default(),
            Self::Shared(data) => Box::new(Arc::unwrap_or_clone(data)),
        }
    }

    pub(crate) fn share(self) -> (Self, Self) {
        let data = match self {
            Self::Shared(data) => data,
            other => Arc::from(other.into_box()),
        };
        (Self::Shared(Arc::clone(&data)), Self::Shared(data))
    }

    /// Returns a copy of a result that a shared step has.
    #[expect(clippy::unreachable, reason = "steps are shared in the host alone, where no result is remote")]
    pub(crate) fn copied(&self) -> Self {
        match self {
            Self::Local(data) => Self::Local(data.clone()),
            Self::Remote(_) => unreachable!("a shared step has no remote results"),
            Self::Shared(data) => Self::Shared(Arc::clone(data)),
        }
    }
}
