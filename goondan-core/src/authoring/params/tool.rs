//! The parameters of tools, and the item that a tool is registered with.

use std::marker::PhantomData;

use serde_json::Value;

use super::{FromJson, HasSchema, ReadParam, SecondJsonParam, Used};
use crate::error::{Error, ErrorCode, Result};
use crate::extension::{ExtensionApi, ToolDescriptor};
use crate::tool::{ToolContext, ToolItem};

/// The inputs of a call of a tool. `C` is the context, or [`Blocking`].
#[derive(Debug)]
pub struct ToolInputs<'a, C> {
    context: C,
    input: Value,
    api: &'a ExtensionApi,
}

/// Replaces the context of a tool that runs on its own thread: the tool may outlive its call.
#[derive(Clone, Copy, Debug)]
pub struct Blocking;

impl<'a> ToolInputs<'a, &'a ToolContext<'a>> {
    /// The context of a call, its arguments, and the handle of the extension.
    pub fn new(context: &'a ToolContext<'a>, input: Value, api: &'a ExtensionApi) -> Self {
        Self { context, input, api }
    }
}

impl<'a> ToolInputs<'a, Blocking> {
    /// The arguments of a call of a blocking tool, and the handle of the extension.
    pub fn blocking(input: Value, api: &'a ExtensionApi) -> Self {
        Self { context: Blocking, input, api }
    }
}

/// A slot of a tool whose value no parameter took.
#[derive(Clone, Copy, Debug)]
pub struct Available;

/// The slots that a tool has left, as types: `G` is the [`ToolInputs`], `S` has the state of the slots for context,
/// input and handle.
#[derive(Debug)]
pub struct ToolSlots<G, S>(PhantomData<fn() -> (G, S)>);

impl<'a> ToolSlots<ToolInputs<'a, &'a ToolContext<'a>>, (Available, Available, Available)> {
    /// All slots available.
    pub fn all() -> Self {
        Self(PhantomData)
    }
}

impl ToolSlots<ToolInputs<'_, Blocking>, (Used, Available, Available)> {
    /// The slots of a blocking tool: all available but the context.
    pub fn blocking() -> Self {
        Self(PhantomData)
    }
}

impl<G, S> ToolSlots<G, S> {
    /// Takes a parameter of a tool.
    #[doc(hidden)]
    pub fn take<P, Rest>(self) -> (ReadParam<G, P>, ToolSlots<G, Rest>)
    where
        Self: HasToolParam<P, Rest, Inputs = G>,
    {
        (Self::read, ToolSlots(PhantomData))
    }
}

/// Implemented by slots that still hold the parameter `P` of a tool. It may take, each at most once,
/// `&ToolContext<'_>`, one owned input that derives `Deserialize` and `JsonSchema`, and `&ExtensionApi`.
#[diagnostic::on_unimplemented(
    message = "`{P}` is not something that this tool can take",
    label = "not in this tool, or taken before",
    note = "it can take `ctx: &ToolContext<'_>`, `input: Input` and `api: &ExtensionApi`",
    note = "an input is an owned type, and derives `serde::Deserialize` and `schemars::JsonSchema`",
    note = "a blocking tool cannot take `&ToolContext`: it may run longer than its call"
)]
pub trait HasToolParam<P, Rest> {
    /// The source of the parameter.
    type Inputs;

    /// Reads the parameter from the inputs.
    ///
    /// # Errors
    /// `E_TOOL_INVALID_ARGS` when the arguments cannot be read as the type.
    fn read(inputs: &mut Self::Inputs) -> Result<P>;
}

#[diagnostic::do_not_recommend]
impl<'a, I, A> HasToolParam<&'a ToolContext<'a>, (Used, I, A)>
    for ToolSlots<ToolInputs<'a, &'a ToolContext<'a>>, (Available, I, A)>
{
    type Inputs = ToolInputs<'a, &'a ToolContext<'a>>;

    fn read(inputs: &mut Self::Inputs) -> Result<&'a ToolContext<'a>> {
        Ok(inputs.context)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, G, C, I> HasToolParam<&'a ExtensionApi, (C, I, Used)> for ToolSlots<ToolInputs<'a, G>, (C, I, Available)> {
    type Inputs = ToolInputs<'a, G>;

    fn read(inputs: &mut Self::Inputs) -> Result<&'a ExtensionApi> {
        Ok(inputs.api)
    }
}

impl<'a, G, C, A, P> HasToolParam<P, (C, Used, A)> for ToolSlots<ToolInputs<'a, G>, (C, Available, A)>
where
    P: FromJson + HasSchema,
{
    type Inputs = ToolInputs<'a, G>;

    fn read(inputs: &mut Self::Inputs) -> Result<P> {
        serde_json::from_value(inputs.input.take()).map_err(|error| {
            Error::new(ErrorCode::TOOL_INVALID_ARGS, format!("the arguments do not fit: {error}"))
                .suggest("call the tool again with arguments that fit its parameters")
        })
    }
}

/// Selected for a second input, so that the compiler prints the message of [`SecondJsonParam`].
impl<'a, G, C, A, P: SecondJsonParam> HasToolParam<P, (C, Used, A)> for ToolSlots<ToolInputs<'a, G>, (C, Used, A)> {
    type Inputs = ToolInputs<'a, G>;

    fn read(_: &mut Self::Inputs) -> Result<P> {
        Err(Error::new(ErrorCode::TOOL_INVALID_ARGS, "the input was taken before"))
    }
}

/// Returns the item of a tool that an attribute declares.
///
/// # Errors
/// `E_TOOL_NAME` when its name is not legal; an error when its line names an argument that the parameters do not
/// have.
#[doc(hidden)]
pub fn tool_item(tool: &ToolDescriptor) -> Result<ToolItem> {
    let parameters = (tool.parameters)();
    if let Some(name) = tool.line.and_then(|line| line.names().find(|name| !has_argument(&parameters, name))) {
        let message =
            format!("`present` of the tool `{}` shows `{{{name}}}`, which is none of its arguments", tool.name);
        let known = arguments(&parameters).map(|known| format!("`{{{known}}}`")).collect::<Vec<_>>().join(", ");
        return Err(Error::msg(message).suggest(format!("write one of {known}")));
    }
    let mut item = ToolItem::new(tool.name)?.parameters(parameters).effect(tool.effect);
    item.description = (!tool.description.is_empty()).then(|| tool.description.to_owned());
    item.timeout = tool.timeout;
    (item.asks, item.parallel) = (tool.asks, tool.parallel);
    Ok(item)
}

/// Whether a call may have the argument `name`. Only the properties of a schema are looked into.
fn has_argument(parameters: &Value, name: &str) -> bool {
    let elsewhere = ["$ref", "oneOf", "anyOf", "allOf", "patternProperties"];
    arguments(parameters).any(|known| known == name) || elsewhere.iter().any(|member| parameters.get(member).is_some())
}

/// Returns the names of the properties.
fn arguments(parameters: &Value) -> impl Iterator<Item = &str> {
    let properties = parameters.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str))
}
