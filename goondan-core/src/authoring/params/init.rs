//! The parameters of `#[init]`.

use std::marker::PhantomData;

use serde_json::Value;

use super::{FromJson, HasSchema, ReadParam, SecondJsonParam, Used};
use crate::error::{Error, ErrorCode, Result};
use crate::extension::ExtensionApi;

/// What the runtime passes to `#[init]`.
#[derive(Debug)]
pub struct InitInputs {
    api: ExtensionApi,
    config: Value,
}

impl InitInputs {
    /// A handle, and the config as it is written in the bundle.
    pub fn new(api: ExtensionApi, config: Value) -> Self {
        Self { api, config }
    }
}

/// The slot of a config that has not been read as the type that `#[init]` takes.
#[derive(Clone, Copy, Debug)]
pub struct RawConfig;

/// What `#[init]` can still take, as types: the handle and the config. The values come later, because reading the
/// config can fail.
#[derive(Debug)]
pub struct InitSlots<A, C>(PhantomData<fn() -> (A, C)>);

impl InitSlots<ExtensionApi, RawConfig> {
    /// Both slots available.
    pub fn all() -> Self {
        Self(PhantomData)
    }
}

impl<A, C> InitSlots<A, C> {
    /// Takes a parameter of `#[init]`.
    #[doc(hidden)]
    pub fn take<P, A2, C2>(self) -> (ReadParam<InitInputs, P>, InitSlots<A2, C2>)
    where
        Self: HasInitParam<P, InitSlots<A2, C2>>,
    {
        (Self::read, InitSlots(PhantomData))
    }
}

/// Implemented by slots that still hold the parameter `P` of `#[init]`. It may take, each at most once, the
/// [`ExtensionApi`], and one config that derives `Deserialize` and `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{P}` is not something that `#[init]` can take",
    label = "not in `#[init]`, or taken before",
    note = "it can take `api: ExtensionApi` and `config: Config`",
    note = "a config is an owned type, and derives `serde::Deserialize` and `schemars::JsonSchema`"
)]
pub trait HasInitParam<P, Rest> {
    /// Reads the parameter from the inputs.
    ///
    /// # Errors
    /// `E_EXT_CONFIG` when the config cannot be read as the type.
    fn read(inputs: &mut InitInputs) -> Result<P>;
}

#[diagnostic::do_not_recommend]
impl<C> HasInitParam<ExtensionApi, InitSlots<Used, C>> for InitSlots<ExtensionApi, C> {
    fn read(inputs: &mut InitInputs) -> Result<ExtensionApi> {
        Ok(inputs.api.clone())
    }
}

impl<P: FromJson + HasSchema, A> HasInitParam<P, InitSlots<A, Used>> for InitSlots<A, RawConfig> {
    fn read(inputs: &mut InitInputs) -> Result<P> {
        serde_json::from_value(inputs.config.take())
            .map_err(|error| Error::new(ErrorCode::EXT_CONFIG, format!("the config cannot be read: {error}")))
    }
}

/// Selected for a second config, so that the compiler prints the message of [`SecondJsonParam`].
impl<P: SecondJsonParam, A> HasInitParam<P, InitSlots<A, Used>> for InitSlots<A, Used> {
    fn read(_: &mut InitInputs) -> Result<P> {
        Err(Error::new(ErrorCode::EXT_CONFIG, "the config was taken before"))
    }
}
