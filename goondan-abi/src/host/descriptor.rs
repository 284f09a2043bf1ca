//! Descriptors of the extensions of a loaded library: leaked, because libraries are never unloaded.

use std::ffi::c_void;
use std::time::Duration;

use goondan_core::{
    BoxFuture, Error, ErrorCode, ExtensionApi, ExtensionDescriptor, MiddlewareDescriptor, RegisterFn, Result, SchemaFn,
    ToolDescriptor,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::extension::HostExtension;
use super::record::{ExtensionRecord, ToolRecord};
use super::runtime::PollingScope;
use crate::bytes::ask;
use crate::future::Imported;
use crate::table::{PluginTable, Text};

/// The output of `describe` for one extension.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExtensionDescription {
    pub(super) package: String,
    pub(super) name: String,
    /// `null` or absent if the extension takes any config.
    #[serde(default)]
    config_schema: Value,
    tools: Vec<ToolDescription>,
}

#[derive(Deserialize)]
struct ToolDescription {
    name: String,
    parameters: Value,
}

/// Returns the descriptions of all extensions of a library, in the order of their numbers.
pub(super) fn describe(plugin: &'static PluginTable) -> Result<Vec<ExtensionDescription>> {
    // SAFETY: The function takes no arguments, and the library stays loaded.
    let count = unsafe { (plugin.extension_count)() };
    let describe = |number| {
        // SAFETY: The number is less than the count; `ask` passes a writable output.
        let described = ask(|output| unsafe { (plugin.describe)(number, output) })?;
        described.ok_or_else(|| Error::new(ErrorCode::EXT_LOAD, "an extension does not describe itself"))?.parse()
    };
    (0..count).map(describe).collect()
}

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn leaked_text(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

pub(super) fn leaked_list<T>(values: impl IntoIterator<Item = T>) -> &'static [T] {
    Box::leak(values.into_iter().collect::<Vec<_>>().into_boxed_slice())
}

fn leaked_texts(texts: &[String]) -> &'static [&'static str] {
    leaked_list(texts.iter().map(|text| leaked_text(text)))
}

fn schema(schema: Value) -> SchemaFn {
    leaked(move || schema.clone())
}

/// Returns the descriptor of the extension that the library knows by `number`, made of its record in the file and of
/// its description.
pub(super) fn descriptor(
    record: &ExtensionRecord,
    description: ExtensionDescription,
    library: &'static PluginTable,
    number: usize,
) -> &'static ExtensionDescriptor {
    let ExtensionDescription { config_schema, tools: mut schemas, .. } = description;
    let tool = |tool: &ToolRecord| {
        let parameters = schemas.iter_mut().find(|schema| schema.name == tool.name);
        let parameters = schema(parameters.map(|schema| schema.parameters.take()).unwrap_or_default());
        let mut descriptor = ToolDescriptor::new(leaked_text(&tool.name), parameters)
            .description(leaked_text(&tool.description))
            .effect(tool.effect);
        descriptor.timeout = tool.timeout_ms.map(Duration::from_millis);
        (descriptor.asks, descriptor.parallel) = (tool.asks, tool.parallel);
        descriptor
    };
    let tools = leaked_list(record.tools.iter().map(tool));
    let middlewares = leaked_list(record.middlewares.iter().map(|layer| {
        MiddlewareDescriptor::new(layer.kind, leaked_text(&layer.function))
            .priority(layer.priority)
            .before(leaked_texts(&layer.before))
            .after(leaked_texts(&layer.after))
    }));
    let config_schema = schema(if config_schema.is_null() { Value::Object(Map::new()) } else { config_schema });
    let register: RegisterFn = leaked(move |api, config| register(library, number, api, &config));
    // Inspection refuses libraries of any other version of the contract.
    let descriptor = ExtensionDescriptor::new(leaked_text(&record.name), config_schema, register)
        .description(leaked_text(&record.description))
        .package(leaked_text(&record.package), leaked_text(&record.version))
        .middlewares(middlewares)
        .tools(tools)
        .subscriptions(leaked_texts(&record.subscriptions))
        .requires(leaked_texts(&record.requires))
        .guard(record.guard);
    leaked(descriptor)
}

/// Initializes an extension of the library for one conversation.
fn register(
    library: &'static PluginTable,
    number: usize,
    api: ExtensionApi,
    config: &Value,
) -> BoxFuture<'static, Result<()>> {
    let name = api.host().extension().clone();
    // A JSON value always serializes.
    let config = serde_json::to_vec(config).unwrap_or_default();
    let handle: *const c_void = HostExtension { api, runtime: Handle::try_current().ok() }.into_handle();
    let (name, config) = (Text::new(name.as_str().as_bytes()), Text::new(&config));
    // SAFETY: The library becomes the owner of the handle; the texts are borrowed for the call.
    let future = unsafe { (library.register)(number, handle, name, config) };
    // SAFETY: The library just returned the future, which has no other owner.
    let future = unsafe { Imported::new(future, PollingScope) };
    Box::pin(async move { future.await.map(drop) })
}
