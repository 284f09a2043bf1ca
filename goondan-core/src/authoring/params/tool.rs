//! Owns the parameters of tools, and the item that a tool is registered with.

use std::marker::PhantomData;

use serde_json::Value;

use super::{FromJson, HasSchema, Read, SecondFromJson, Taken};
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
    pub fn take<P, Rest>(self) -> (Read<G, P>, ToolSlots<G, Rest>)
    where
        Self: GivesToTool<P, Rest, Given = G>,
    {
        (Self::read, ToolSlots(PhantomData))
    }
}

/// Holds for slots that still have the parameter `P` of a tool. It may take, each at most once, `&ToolContext<'_>`, one
/// input that derives `Deserialize` and `JsonSchema` and owns what it holds, and `&ExtensionApi`.
#[diagnostic::on_unimplemented(
    message = "`{P}` is not something that this tool can take",
    label = "not in this tool, or taken before",
    note = "it can take `ctx: &ToolContext<'_>`, `input: Input` and `api: &ExtensionApi`",
    note = "an input is an owned type, and derives `serde::Deserialize` and `schemars::JsonSchema`",
    note = "a blocking tool cannot take `&ToolContext`: it may run longer than its call"
)]
pub trait GivesToTool<P, Rest> {
    /// What the parameter is made from.
    type Given;

    /// Makes the parameter from what the runtime gives.
    ///
    /// # Errors
    /// `E_TOOL_INVALID_ARGS` when the arguments cannot be read as the type.
    fn read(given: &mut Self::Given) -> Result<P>;
}

#[diagnostic::do_not_recommend]
impl<'a, I, A> GivesToTool<&'a ToolContext<'a>, (Taken, I, A)>
    for ToolSlots<ToolGiven<'a, &'a ToolContext<'a>>, (Full, I, A)>
{
    type Given = ToolGiven<'a, &'a ToolContext<'a>>;

    fn read(given: &mut Self::Given) -> Result<&'a ToolContext<'a>> {
        Ok(given.context)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, G, C, I> GivesToTool<&'a ExtensionApi, (C, I, Taken)> for ToolSlots<ToolGiven<'a, G>, (C, I, Full)> {
    type Given = ToolGiven<'a, G>;

    fn read(given: &mut Self::Given) -> Result<&'a ExtensionApi> {
        Ok(given.api)
    }
}

impl<'a, G, C, A, P> GivesToTool<P, (C, Taken, A)> for ToolSlots<ToolGiven<'a, G>, (C, Full, A)>
where
    P: FromJson + HasSchema,
{
    type Given = ToolGiven<'a, G>;

    fn read(given: &mut Self::Given) -> Result<P> {
        serde_json::from_value(given.input.take()).map_err(|error| {
            Error::new(ErrorCode::TOOL_INVALID_ARGS, format!("the arguments do not fit: {error}"))
                .suggest("call the tool again with arguments that fit its parameters")
        })
    }
}

/// A second input, which gives the compiler the words for it.
impl<'a, G, C, A, P: SecondFromJson> GivesToTool<P, (C, Taken, A)> for ToolSlots<ToolGiven<'a, G>, (C, Taken, A)> {
    type Given = ToolGiven<'a, G>;

    fn read(_: &mut Self::Given) -> Result<P> {
        Err(Error::new(ErrorCode::TOOL_INVALID_ARGS, "the input was taken before"))
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
