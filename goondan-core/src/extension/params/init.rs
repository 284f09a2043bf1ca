//! Owns the parameters of `#[init]`.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Found, Taken};
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

/// What `#[init]` can be given, as types: the handle and the config. The values come later, because the schema of the
/// config is asked for without them.
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
    pub fn take<P: InitParam<Self, InitSlots<A2, C2>>, A2, C2>(self) -> (Found<Given, P>, InitSlots<A2, C2>) {
        (Found { read: P::read, schema: P::schema }, InitSlots(PhantomData))
    }
}

/// What `#[init]` may take, each at most once: the [`ExtensionApi`], and one config that derives `Deserialize` and
/// `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that `#[init]` can take",
    label = "wrong type, or taken twice",
    note = "it can take `api: ExtensionApi` and `config: Config`",
    note = "a config is an owned type, and derives `serde::Deserialize` and `schemars::JsonSchema`"
)]
pub trait InitParam<Slots, Rest>: Sized {
    /// Makes the parameter from what the runtime gives.
    ///
    /// # Errors
    /// `E_EXT_CONFIG` when the config cannot be read as the type.
    fn read(given: &mut Given) -> Result<Self>;
    /// The JSON Schema of the config, if this parameter is it.
    fn schema() -> Option<Value> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<C> InitParam<InitSlots<ExtensionApi, C>, InitSlots<Taken, C>> for ExtensionApi {
    fn read(given: &mut Given) -> Result<Self> {
        Ok(given.api.clone())
    }
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema, A> InitParam<InitSlots<A, RawConfig>, InitSlots<A, Taken>> for T {
    fn read(given: &mut Given) -> Result<Self> {
        serde_json::from_value(given.config.take())
            .map_err(|error| Error::new(ErrorCode::EXT_CONFIG, format!("the config cannot be read: {error}")))
    }

    fn schema() -> Option<Value> {
        Some(schemars::schema_for!(T).to_value())
    }
}
