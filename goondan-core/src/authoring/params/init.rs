//! Owns the parameters of `#[init]`.

use std::marker::PhantomData;

use serde_json::Value;

use super::{FromJson, HasSchema, Read, SecondFromJson, Taken};
use crate::error::{Error, ErrorCode, Result};
use crate::extension::ExtensionApi;

/// What the runtime gives to `#[init]`.
#[derive(Debug)]
pub struct Given {
    api: ExtensionApi,
    config: Value,
}

impl Given {
    /// A handle, and the config as it stands in the bundle.
    pub fn new(api: ExtensionApi, config: Value) -> Self {
        Self { api, config }
    }
}

/// The slot of a config that waits to be read as the type that `#[init]` takes.
#[derive(Clone, Copy, Debug)]
pub struct RawConfig;

/// What `#[init]` can be given, as types: the handle and the config. The values come later, because reading the config can
/// fail.
#[derive(Debug)]
pub struct InitSlots<A, C>(PhantomData<fn() -> (A, C)>);

impl InitSlots<ExtensionApi, RawConfig> {
    /// Both slots full.
    pub fn all() -> Self {
        Self(PhantomData)
    }
}

impl<A, C> InitSlots<A, C> {
    /// Takes a parameter of `#[init]`.
    #[doc(hidden)]
    pub fn take<P, A2, C2>(self) -> (Read<Given, P>, InitSlots<A2, C2>)
    where
        Self: GivesToInit<P, InitSlots<A2, C2>>,
    {
        (Self::read, InitSlots(PhantomData))
    }
}

/// Holds for slots that still have the parameter `P` of `#[init]`. It may take, each at most once, the [`ExtensionApi`], and
/// one config that derives `Deserialize` and `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{P}` is not something that `#[init]` can take",
    label = "not in `#[init]`, or taken before",
    note = "it can take `api: ExtensionApi` and `config: Config`",
    note = "a config is an owned type, and derives `serde::Deserialize` and `schemars::JsonSchema`"
)]
pub trait GivesToInit<P, Rest> {
    /// Makes the parameter from what the runtime gives.
    ///
    /// # Errors
    /// `E_EXT_CONFIG` when the config cannot be read as the type.
    fn read(given: &mut Given) -> Result<P>;
}

#[diagnostic::do_not_recommend]
impl<C> GivesToInit<ExtensionApi, InitSlots<Taken, C>> for InitSlots<ExtensionApi, C> {
    fn read(given: &mut Given) -> Result<ExtensionApi> {
        Ok(given.api.clone())
    }
}

impl<P: FromJson + HasSchema, A> GivesToInit<P, InitSlots<A, Taken>> for InitSlots<A, RawConfig> {
    fn read(given: &mut Given) -> Result<P> {
        serde_json::from_value(given.config.take())
            .map_err(|error| Error::new(ErrorCode::EXT_CONFIG, format!("the config cannot be read: {error}")))
    }
}

/// A second config, which gives the compiler the words for it.
impl<P: SecondFromJson, A> GivesToInit<P, InitSlots<A, Taken>> for InitSlots<A, Taken> {
    fn read(_: &mut Given) -> Result<P> {
        Err(Error::new(ErrorCode::EXT_CONFIG, "the config was taken before"))
    }
}
