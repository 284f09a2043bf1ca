//! The parameters of `#[init]`.

use std::marker::PhantomData;

use serde_json::Value;

use super::{FromJson, HasSchema, ReadParam, SecondJsonParam, Used};
use crate::error::{Error, ErrorCode, Result};
use crate::extension::{ExtensionApi, InitContext};

/// The inputs of `#[init]`.
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

/// The slots that `#[init]` has left, as types: the handle, the config and the context. The values come later, because
/// reading the config can fail, and the context is made only if it is taken.
#[derive(Debug)]
pub struct InitSlots<A, C, X>(PhantomData<(A, C, X)>);

impl InitSlots<ExtensionApi, RawConfig, InitContext> {
    /// All slots available.
    pub fn all() -> Self {
        Self(PhantomData)
    }
}

impl<A, C, X> InitSlots<A, C, X> {
    /// Takes a parameter of `#[init]`.
    #[doc(hidden)]
    pub fn take<P, A2, C2, X2>(self) -> (ReadParam<InitInputs, P>, InitSlots<A2, C2, X2>)
    where
        Self: HasInitParam<P, InitSlots<A2, C2, X2>>,
    {
        (Self::read, InitSlots(PhantomData))
    }
}

/// Implemented by slots that still hold the parameter `P` of `#[init]`. It may take, each at most once, the
/// [`ExtensionApi`], one config that derives `Deserialize` and `JsonSchema`, and the [`InitContext`].
#[diagnostic::on_unimplemented(
    message = "`{P}` is not something that `#[init]` can take",
    label = "not in `#[init]`, or taken before",
    note = "it can take `api: ExtensionApi`, `config: Config` and `ctx: InitContext`",
    note = "a config is an owned type, and derives `serde::Deserialize` and `schemars::JsonSchema`"
)]
pub trait HasInitParam<P, Rest> {
    /// Reads the parameter from the inputs.
    ///
    /// # Errors
    /// `E_EXT_CONFIG` when the config cannot be read as the type, and in a library the error of a host that returns no
    /// context.
    fn read(inputs: &mut InitInputs) -> Result<P>;
}

#[diagnostic::do_not_recommend]
impl<C, X> HasInitParam<ExtensionApi, InitSlots<Used, C, X>> for InitSlots<ExtensionApi, C, X> {
    fn read(inputs: &mut InitInputs) -> Result<ExtensionApi> {
        Ok(inputs.api.clone())
    }
}

#[diagnostic::do_not_recommend]
impl<A, C> HasInitParam<InitContext, InitSlots<A, C, Used>> for InitSlots<A, C, InitContext> {
    fn read(inputs: &mut InitInputs) -> Result<InitContext> {
        InitContext::of(&inputs.api)
    }
}

impl<P: FromJson + HasSchema, A, X> HasInitParam<P, InitSlots<A, Used, X>> for InitSlots<A, RawConfig, X> {
    fn read(inputs: &mut InitInputs) -> Result<P> {
        serde_json::from_value(inputs.config.take())
            .map_err(|error| Error::new(ErrorCode::EXT_CONFIG, format!("the config cannot be read: {error}")))
    }
}

/// Selected for a second config, so that the compiler prints the message of [`SecondJsonParam`].
impl<P: SecondJsonParam, A, X> HasInitParam<P, InitSlots<A, Used, X>> for InitSlots<A, Used, X> {
    fn read(_: &mut InitInputs) -> Result<P> {
        Err(Error::new(ErrorCode::EXT_CONFIG, "the config was taken before"))
    }
}
