//! Owns the parameters of tools, and the item that a tool is registered with.

use std::marker::PhantomData;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Found, Taken};
use crate::error::{Error, ErrorCode, Result};
use crate::extension::{ExtensionApi, ToolDescriptor};
use crate::tool::{ToolContext, ToolItem};

/// What the runtime gives to a call of a tool. `C` is the context, if the call has one.
#[derive(Debug)]
pub struct ToolGiven<'a, C> {
    context: C,
    input: Value,
    api: &'a ExtensionApi,
}

/// In the place of the context of a tool that runs on a thread of its own: the call may be over before the tool is.
#[derive(Clone, Copy, Debug)]
pub struct OffThread;

impl<'a> ToolGiven<'a, &'a ToolContext<'a>> {
    /// The context of a call, its arguments, and the handle of the extension.
    pub fn new(context: &'a ToolContext<'a>, input: Value, api: &'a ExtensionApi) -> Self {
        Self { context, input, api }
    }
}

impl<'a> ToolGiven<'a, OffThread> {
    /// The arguments of a call of a blocking tool, and the handle of the extension.
    pub fn blocking(input: Value, api: &'a ExtensionApi) -> Self {
        Self { context: OffThread, input, api }
    }
}

/// A full slot of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Full;

/// What a tool can be given, as types: `G` is the [`ToolGiven`], `S` says which of context, input and handle are left.
#[derive(Debug)]
pub struct ToolSlots<G, S>(PhantomData<fn() -> (G, S)>);

impl<'a> ToolSlots<ToolGiven<'a, &'a ToolContext<'a>>, (Full, Full, Full)> {
    /// All slots full.
    pub fn all() -> Self {
        Self(PhantomData)
    }
}

impl ToolSlots<ToolGiven<'_, OffThread>, (Taken, Full, Full)> {
    /// The slots of a blocking tool: all full but that of the context.
    pub fn blocking() -> Self {
        Self(PhantomData)
    }
}

impl<G, S> ToolSlots<G, S> {
    /// Takes a parameter of a tool.
    #[doc(hidden)]
    pub fn take<P: ToolParam<G, S, Rest>, Rest>(self) -> (Found<G, P>, ToolSlots<G, Rest>) {
        (Found { read: P::read, schema: P::schema }, ToolSlots(PhantomData))
    }
}

/// What a tool may take, each at most once: `&ToolContext<'_>`, one input that derives `Deserialize` and `JsonSchema` and
/// owns what it holds, and `&ExtensionApi`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that this tool can take",
    label = "wrong type, or taken twice",
    note = "it can take `ctx: &ToolContext<'_>`, `input: Input` and `api: &ExtensionApi`",
    note = "an input is an owned type, and derives `serde::Deserialize` and `schemars::JsonSchema`",
    note = "a blocking tool cannot take `&ToolContext`: it may run longer than its call"
)]
pub trait ToolParam<Given, Slots, Rest>: Sized {
    /// Makes the parameter from what the runtime gives.
    ///
    /// # Errors
    /// `E_TOOL_INVALID_ARGS` when the arguments cannot be read as the type.
    fn read(given: &mut Given) -> Result<Self>;
    /// The JSON Schema of the input, if this parameter is it.
    fn schema() -> Option<Value> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<'a, I, A> ToolParam<ToolGiven<'a, Self>, (Full, I, A), (Taken, I, A)> for &'a ToolContext<'a> {
    fn read(given: &mut ToolGiven<'a, Self>) -> Result<Self> {
        Ok(given.context)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, G, C, I> ToolParam<ToolGiven<'a, G>, (C, I, Full), (C, I, Taken)> for &'a ExtensionApi {
    fn read(given: &mut ToolGiven<'a, G>) -> Result<Self> {
        Ok(given.api)
    }
}

#[diagnostic::do_not_recommend]
impl<G, C, A, T> ToolParam<ToolGiven<'_, G>, (C, Full, A), (C, Taken, A)> for T
where
    T: DeserializeOwned + JsonSchema,
{
    fn read(given: &mut ToolGiven<'_, G>) -> Result<Self> {
        serde_json::from_value(given.input.take()).map_err(|error| {
            Error::new(ErrorCode::TOOL_INVALID_ARGS, format!("the arguments do not fit: {error}"))
                .suggest("call the tool again with arguments that fit its parameters")
        })
    }

    /// Without the address of the meta schema: models read this at every step, and it tells them nothing.
    fn schema() -> Option<Value> {
        let settings = SchemaSettings::default().with(|settings| settings.meta_schema = None);
        Some(settings.into_generator().into_root_schema_for::<T>().to_value())
    }
}

/// The item of a tool that an attribute declares.
///
/// # Errors
/// `E_TOOL_NAME` when its name is not legal.
#[doc(hidden)]
pub fn tool_item(tool: &ToolDescriptor) -> Result<ToolItem> {
    let mut item = ToolItem::new(tool.name)?.parameters((tool.parameters)()).effect(tool.effect);
    item.description = (!tool.description.is_empty()).then(|| tool.description.to_owned());
    item.timeout = tool.timeout;
    Ok(item)
}
