//! Owns loading: an inspected library becomes extensions that an agent takes like linked ones.

use std::ffi::c_void;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use goondan_core::{
    API_VERSION, BoxFuture, Error, ErrorCode, ExtensionApi, ExtensionDescriptor, MiddlewareDescriptor, Result,
    SchemaFn, ToolDescriptor,
};
use libloading::os::unix;
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Handle;

use super::copy;
use super::extension::Extension;
use super::inspect::Inspected;
use super::record::{ExtensionRecord, ToolRecord};
use super::runtime::Polling;
use super::table::HOST;
use crate::bytes::ask;
use crate::future::Imported;
use crate::table::{DECLARATION_SYMBOL, Declaration, HostTable, PluginTable, Text};

/// A library that was loaded. It stays loaded as long as the process: code of it may run on threads that nobody can name.
#[derive(Debug)]
pub struct Loaded {
    path: Arc<Path>,
    extensions: &'static [&'static ExtensionDescriptor],
}

/// What `describe` says of an extension.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    package: String,
    name: String,
    config_schema: Value,
    tools: Vec<DescribedTool>,
}

#[derive(Deserialize)]
struct DescribedTool {
    name: String,
    parameters: Value,
}

impl Inspected {
    /// Loads the library: runs what it does at loading, and lets it describe its extensions. They themselves do not run
    /// before an agent registers them.
    ///
    /// It is loaded from a copy of its own, so that the file may be replaced, or written to, while the program runs; the new
    /// one is inspected and loaded like any other. A file that holds what one that was loaded held is the same library: its
    /// extensions are those of the first.
    ///
    /// # Errors
    /// `E_EXT_LOAD` when the system cannot load it, when it is not the file that was inspected, or when it does not keep to
    /// the contract.
    pub fn load(self) -> Result<Loaded> {
        self.load_with(&HOST)
    }

    /// The same with another table of the host, for the tests of the contract.
    #[doc(hidden)]
    pub fn load_with(self, host: &'static HostTable) -> Result<Loaded> {
        // Whoever comes while a library is loaded wants the same one.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let same = known.iter().find(|known| std::ptr::eq(known.host, host) && self.is_copied_from(&known.copy));
        if let Some(same) = same {
            return Ok(Loaded { path: self.path.into(), extensions: same.extensions });
        }
        let copy = self.copy()?;
        let extensions = list(self.start(&copy, host)?);
        known.push(Known { copy, host, extensions });
        Ok(Loaded { path: self.path.into(), extensions })
    }

    /// Whether the file holds what `copy`, which was loaded, does.
    fn is_copied_from(&self, copy: &Path) -> bool {
        // A file that cannot be compared is loaded, or fails, by itself.
        copy::is_same(&self.path, copy).unwrap_or(false) && self.is_copied_to(copy)
    }

    /// A copy of what was inspected.
    fn copy(&self) -> Result<PathBuf> {
        let copy = copy::of(&self.path).map_err(|error| {
            let (path, place) = (self.path.display(), std::env::temp_dir());
            Error::new(ErrorCode::EXT_LOAD, format!("`{path}` cannot be copied to {}: {error}", place.display()))
                .suggest("libraries are loaded from copies; `TMPDIR` says where these lie")
                .caused_by(error)
        })?;
        if self.is_copied_to(&copy) {
            return Ok(copy);
        }
        // It was never mapped.
        _ = fs::remove_file(&copy);
        let message = format!("`{}` is not the file that was inspected", self.path.display());
        Err(Error::new(ErrorCode::EXT_LOAD, message).suggest("somebody writes to it; try again when that is done"))
    }

    /// Loads `copy`, and has it describe its extensions.
    fn start(&self, copy: &Path, host: &'static HostTable) -> Result<Vec<&'static ExtensionDescriptor>> {
        let failed = |what: String| Error::new(ErrorCode::EXT_LOAD, format!("`{}` {what}", self.path.display()));
        let declaration = open(self, copy)?;
        let mut plugin = std::ptr::null();
        // SAFETY: The declaration was checked, so the entry has this form; the places are ours.
        ask(|error| unsafe { (declaration.entry)(host, &raw mut plugin, error) })?;
        if plugin.is_null() {
            return Err(failed("gave no table".to_owned()));
        }
        // SAFETY: By the contract a table that lives as long as the process.
        let plugin: &'static PluginTable = unsafe { &*plugin };
        let mut extensions = Vec::new();
        for (number, described) in describe(plugin)?.into_iter().enumerate() {
            let own = self.extensions().iter();
            let mut own = own.filter(|record| record.name == described.name && record.package == described.package);
            if let Some(record) = own.next() {
                extensions.push(descriptor(record, described, plugin, number));
            }
        }
        if let Some(lost) = self.extensions().iter().find(|record| extensions.iter().all(|e| e.name != record.name)) {
            return Err(failed(format!("names the extension `{}` and does not have it", lost.name)));
        }
        Ok(extensions)
    }
}

/// What was loaded, for whoever wants the same again.
struct Known {
    copy: PathBuf,
    host: &'static HostTable,
    extensions: &'static [&'static ExtensionDescriptor],
}

/// All libraries of this process. A file with the same content is the same library, and so are its extensions: a reload
/// knows by them what is unchanged.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// The table that libraries are given, for the tests of the contract.
#[doc(hidden)]
pub fn host_table() -> &'static HostTable {
    &HOST
}

/// Maps a copy of the file, for ever, and finds its declaration.
fn open(inspected: &Inspected, copy: &Path) -> Result<&'static Declaration> {
    let failed = |error: libloading::Error| {
        Error::new(ErrorCode::EXT_LOAD, format!("`{}` cannot be loaded: {error}", inspected.path.display())).suggest(
            "the message of the system above names what is missing, often another library; one that lies beside this one \
             is not found there, because libraries are loaded from copies",
        )
    };
    // SAFETY: Loading runs the initializers of the library, which whoever loads it trusts; see the stated limits. The path
    // is absolute, so that the system does not search its own directories.
    let library = unsafe { unix::Library::open(Some(copy), unix::RTLD_NOW | unix::RTLD_LOCAL) };
    let library = library.map_err(failed)?;
    // SAFETY: The symbol was found in the file, as data of this form.
    let symbol = unsafe { library.get::<*const Declaration>(DECLARATION_SYMBOL) };
    let address = symbol.map_err(failed)?.into_raw().cast::<Declaration>();
    // Never unloaded: threads, wakers and statics may lead into it.
    std::mem::forget(library);
    let loaded = std::ptr::slice_from_raw_parts(address.cast::<u8>(), std::mem::offset_of!(Declaration, entry));
    // SAFETY: The file that was inspected has at least as many bytes there.
    let same = unsafe { &*loaded } == inspected.bytes.get(..loaded.len()).unwrap_or_default();
    if !same {
        // Nobody but this process writes to the copy. A library can still replace its own data while it is loaded.
        let message = format!("`{}` is another library once it is loaded", inspected.path.display());
        return Err(Error::new(ErrorCode::EXT_LOAD, message).suggest("build it again"));
    }
    // SAFETY: It is the declaration that was checked, and it is never unloaded.
    Ok(unsafe { &*address })
}

fn describe(plugin: &'static PluginTable) -> Result<Vec<Described>> {
    // SAFETY: The function came with the table.
    let count = unsafe { (plugin.extension_count)() };
    let describe = |number| {
        // SAFETY: As above; the output is a place of ours.
        let described = ask(|output| unsafe { (plugin.describe)(number, output) })?;
        described.ok_or_else(|| Error::new(ErrorCode::EXT_LOAD, "an extension does not describe itself"))?.parse()
    };
    (0..count).map(describe).collect()
}

/// A value that lives as long as the library, which is as long as the process.
fn forever<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn text(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn list<T>(values: impl IntoIterator<Item = T>) -> &'static [T] {
    Box::leak(values.into_iter().collect::<Vec<_>>().into_boxed_slice())
}

fn schema(schema: Value) -> SchemaFn {
    forever(move || schema.clone())
}

fn descriptor(
    record: &ExtensionRecord,
    described: Described,
    plugin: &'static PluginTable,
    number: usize,
) -> &'static ExtensionDescriptor {
    let Described { config_schema, tools: mut schemas, .. } = described;
    let tool = |tool: &ToolRecord| ToolDescriptor {
        name: text(&tool.name),
        description: text(&tool.description),
        effect: tool.effect,
        timeout: tool.timeout_ms.map(Duration::from_millis),
        parameters: schema(
            schemas
                .iter_mut()
                .find(|schema| schema.name == tool.name)
                .map(|schema| schema.parameters.take())
                .unwrap_or_default(),
        ),
    };
    let tools = list(record.tools.iter().map(tool));
    let middlewares = list(record.middlewares.iter().map(|layer| MiddlewareDescriptor {
        kind: layer.kind,
        function: text(&layer.function),
        priority: layer.priority,
        before: list(layer.before.iter().map(|name| text(name))),
        after: list(layer.after.iter().map(|name| text(name))),
    }));
    forever(ExtensionDescriptor {
        name: text(&record.name),
        description: text(&record.description),
        package: text(&record.package),
        version: text(&record.version),
        // Another one is refused at inspection.
        api_version: API_VERSION,
        middlewares,
        tools,
        subscriptions: list(record.subscriptions.iter().map(|pattern| text(pattern))),
        requires: list(record.requires.iter().map(|capability| text(capability))),
        config_schema: schema(config_schema),
        register: forever(move |api, config| register(plugin, number, api, &config)),
    })
}

/// Makes an instance of an extension of the library.
fn register(
    plugin: &'static PluginTable,
    number: usize,
    api: ExtensionApi,
    config: &Value,
) -> BoxFuture<'static, Result<()>> {
    let name = api.host().extension().clone();
    // A JSON value can be written as JSON.
    let config = serde_json::to_vec(config).unwrap_or_default();
    let handle: *const c_void = Extension { api, runtime: Handle::try_current().ok() }.into_handle();
    let (name, config) = (Text::new(name.as_str().as_bytes()), Text::new(&config));
    // SAFETY: The function came with the table; the handle is the library's from now on, the texts are borrowed.
    let future = unsafe { (plugin.register)(number, handle, name, config) };
    // SAFETY: The future is new and ours.
    let future = unsafe { Imported::new(future, Polling) };
    Box::pin(async move { future.await.map(drop) })
}

impl Loaded {
    /// The extensions of the library's own crate, for [`AgentBuilder::described`](goondan_core::AgentBuilder::described).
    pub fn extensions(&self) -> &[&'static ExtensionDescriptor] {
        self.extensions
    }

    /// The extension called `name`, or without a name the only one.
    ///
    /// # Errors
    /// `E_EXT_LOAD` when there is none of that name, or when there are several to choose from.
    pub fn extension(&self, name: Option<&str>) -> Result<&'static ExtensionDescriptor> {
        let found = match (name, self.extensions) {
            (Some(name), all) => all.iter().find(|descriptor| descriptor.name == name),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        found.copied().ok_or_else(|| {
            let names: Vec<_> = self.extensions.iter().map(|descriptor| descriptor.name).collect();
            let what = name.map_or_else(
                || "holds several extensions".to_owned(),
                |name| format!("holds no extension called `{name}`"),
            );
            Error::new(ErrorCode::EXT_LOAD, format!("`{}` {what}", self.path.display()))
                .suggest(format!("choose by name one of: {}", names.join(", ")))
        })
    }
}
