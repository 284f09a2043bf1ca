//! Loads an inspected library, whose extensions an agent can then use like linked ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::{Error, ErrorCode, ExtensionDescriptor, Result};
use goondan_lock::Lock;
use libloading::os::unix;

use super::copy::{self, Content};
use super::descriptor::{describe, descriptor, leaked_list};
use super::inspect::Inspected;
use super::schemas::{ExtensionSchemas, ToolSchema};
use super::table::HOST;
use crate::bytes::ask;
use crate::table::{DECLARATION_SYMBOL, Declaration, HostTable1_3, PluginTable};

/// A loaded library. It stays loaded until the process ends, because its code may still be running on threads that
/// the host does not know.
#[derive(Debug)]
pub struct Loaded {
    path: Arc<Path>,
    extensions: &'static [&'static ExtensionDescriptor],
}

impl Inspected {
    /// Loads the library and has it describe its extensions. This runs the initializers of the library; code of an
    /// extension runs only when an agent registers it.
    ///
    /// The library is loaded from a copy, so that the file may be replaced or overwritten while the program runs; the
    /// new file is inspected and loaded like any other. A file with the same content as one that was loaded before is
    /// the same library: the extensions of the first one are returned.
    ///
    /// # Errors
    /// `E_EXT_LOAD` if the system cannot load the library, if it is not the file that was inspected, if it returns an
    /// error, or if it breaks the contract; `E_SCHEMA_INVALID` if no object can fit the schema of a tool or a config.
    pub fn load(self) -> Result<Loaded> {
        self.load_with(&HOST)
    }

    /// Like [`Inspected::load`], with another host table, for the tests of the contract.
    #[doc(hidden)]
    pub fn load_with(self, host: &'static HostTable1_3) -> Result<Loaded> {
        // Held while the library is loaded, so that a concurrent caller gets the same library.
        let mut loaded = LOADED.lock();
        let host_at = std::ptr::from_ref(host).addr();
        let is_like = |known: &&LoadedLibrary| known.host == host_at && known.inspected.is_same(&self);
        let mut like = loaded.iter().filter(is_like).peekable();
        if like.peek().is_some()
            && let Ok(content) = Content::of(&self.path)
            && let Some(known) = like.find(|known| known.content == content)
            && self.has_digest_of(&self.path)
        {
            return Ok(Loaded { path: self.path.into(), extensions: known.extensions });
        }
        let (copy, content) = self.copy()?;
        let extensions = leaked_list(self.start(&copy, host)?);
        let path = self.path.as_path().into();
        loaded.push(LoadedLibrary { host: host_at, inspected: self, content, extensions });
        Ok(Loaded { path, extensions })
    }

    /// Copies the file, and makes sure that the copy is the file that was inspected.
    fn copy(&self) -> Result<(PathBuf, Content)> {
        let copy = copy::create(&self.path).map_err(|error| {
            let (path, directory) = (self.path.display(), std::env::temp_dir());
            Error::new(ErrorCode::EXT_LOAD, format!("`{path}` cannot be copied to {}: {error}", directory.display()))
                .suggest("libraries are loaded from copies; `TMPDIR` says where they are stored")
                .caused_by(error)
        })?;
        if let Some(content) = self.content_of_copy(&copy) {
            return Ok((copy, content));
        }
        // The copy was never mapped, so it can be removed.
        _ = fs::remove_file(&copy);
        let message = format!("`{}` is not the file that was inspected", self.path.display());
        Err(Error::new(ErrorCode::EXT_LOAD, message).suggest("the file is being written; try again when that is done"))
    }

    /// Loads `copy` and returns the descriptors of its extensions.
    fn start(&self, copy: &Path, host: &'static HostTable1_3) -> Result<Vec<&'static ExtensionDescriptor>> {
        let failed = |what: String| Error::new(ErrorCode::EXT_LOAD, format!("`{}` {what}", self.path.display()));
        let declaration = open(self, copy)?;
        let mut plugin = std::ptr::null();
        // SAFETY: `Declared::check` accepted the version of the ABI, so `entry` has this signature. The host table is
        // static and begins with the table of version 1.0, and both outputs are writable.
        let entered =
            ask(|error| unsafe { (declaration.entry)(std::ptr::from_ref(host).cast(), &raw mut plugin, error) });
        entered.map_err(|error| self.failed_itself("could not start", &error))?;
        if plugin.is_null() {
            return Err(failed("gave no table".to_owned()));
        }
        // SAFETY: The contract requires the library to write a table that is valid as long as the process runs.
        let plugin: &'static PluginTable = unsafe { &*plugin };
        let mut extensions = Vec::new();
        let described = describe(plugin).map_err(|error| self.failed_itself("could not describe itself", &error))?;
        for (number, description) in described.into_iter().enumerate() {
            let own = self.extensions().iter();
            let mut own = own.filter(|record| record.name == description.name && record.package == description.package);
            if let Some(record) = own.next() {
                let descriptor = descriptor(record, description, plugin, number);
                goondan_runtime::schema::check_descriptor(descriptor)
                    .map_err(|error| self.unfit(descriptor.name, &error))?;
                extensions.push(descriptor);
            }
        }
        if let Some(lost) = self.extensions().iter().find(|record| extensions.iter().all(|e| e.name != record.name)) {
            return Err(failed(format!("names the extension `{}` and does not have it", lost.name)));
        }
        Ok(extensions)
    }

    /// The error for an error that the code of the library returned.
    fn failed_itself(&self, what: &str, error: &Error) -> Error {
        let message = format!("`{}` {what}: {}: {}", self.path.display(), error.code(), error.message());
        let remedy = error.suggestion().unwrap_or("correct the library, or use another build of it");
        Error::new(ErrorCode::EXT_LOAD, message).suggest(remedy.to_owned())
    }

    /// The error for an extension with a schema that no object can fit.
    fn unfit(&self, extension: &str, error: &Error) -> Error {
        let message = format!("the extension `{extension}` in `{}`: {}", self.path.display(), error.message());
        Error::new(error.code().clone(), message).suggest(error.suggestion().unwrap_or_default().to_owned())
    }
}

/// A library that was loaded, to be found again by its content.
struct LoadedLibrary {
    /// The address of its host table.
    host: usize,
    inspected: Inspected,
    content: Content,
    extensions: &'static [&'static ExtensionDescriptor],
}

/// All libraries of this process. The same content returns the same descriptors, by which a reload recognizes
/// extensions that did not change.
static LOADED: Lock<Vec<LoadedLibrary>> = Lock::new(Vec::new());

/// Returns the table that libraries receive, for the tests of the contract.
#[doc(hidden)]
pub fn host_table() -> &'static HostTable1_3 {
    &HOST
}

/// Maps a copy of the inspected file, without ever unmapping it, and returns its declaration.
fn open(inspected: &Inspected, copy: &Path) -> Result<&'static Declaration> {
    let failed = |error: libloading::Error| {
        // The message of the system is the source; the error itself only names the function.
        let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        Error::new(ErrorCode::EXT_LOAD, format!("`{}` cannot be loaded: {reason}", inspected.path.display())).suggest(
            "the message of the system names what is missing, often another library; one in the directory of this one \
             is not found there, because libraries are loaded from copies",
        )
    };
    // SAFETY: Loading runs the initializers of the library; the user who names a library trusts its code, as
    // `docs/abi.md` states. The path is absolute, so the system does not search its own directories.
    let library = unsafe { unix::Library::open(Some(copy), unix::RTLD_NOW | unix::RTLD_LOCAL) };
    let library = library.map_err(failed)?;
    // SAFETY: Inspection found the symbol in the file, as data that starts as a declaration.
    let symbol = unsafe { library.get::<*const Declaration>(DECLARATION_SYMBOL) };
    let address = symbol.map_err(failed)?.into_raw().cast::<Declaration>();
    // Never unloaded, because threads, wakers and statics may refer to it.
    std::mem::forget(library);
    let loaded = std::ptr::slice_from_raw_parts(address.cast::<u8>(), std::mem::offset_of!(Declaration, entry));
    // SAFETY: Inspection found a declaration of at least this size at the symbol.
    let same = unsafe { &*loaded } == inspected.bytes.get(..loaded.len()).unwrap_or_default();
    if !same {
        // Only this process writes to the copy, but an initializer of the library can change its own data.
        let message = format!("`{}` is another library once it is loaded", inspected.path.display());
        return Err(Error::new(ErrorCode::EXT_LOAD, message).suggest("build it again"));
    }
    // SAFETY: It equals the declaration that inspection checked, and the library is never unloaded.
    Ok(unsafe { &*address })
}

impl Loaded {
    /// Returns the extensions of the library's own crate, for
    /// [`AgentBuilder::described_extension`](goondan_runtime::AgentBuilder::described_extension).
    pub fn extensions(&self) -> &[&'static ExtensionDescriptor] {
        self.extensions
    }

    /// Returns the extension called `name`, or without a name the only one.
    ///
    /// # Errors
    /// `E_EXT_LOAD` if there is no extension of that name, or if no name is given and there are several.
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

    /// Returns the schemas of the extensions, which the library computes.
    pub fn schemas(&self) -> Vec<ExtensionSchemas> {
        let schemas = self.extensions.iter().map(|extension| ExtensionSchemas {
            name: extension.name.to_owned(),
            config: (extension.config_schema)(),
            tools: extension
                .tools
                .iter()
                .map(|tool| ToolSchema { name: tool.name.to_owned(), parameters: (tool.parameters)() })
                .collect(),
        });
        schemas.collect()
    }
}
