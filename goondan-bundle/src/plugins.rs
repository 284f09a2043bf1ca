//! Inspects and loads the libraries of bundles with `goondan-abi`.

use goondan_abi::{ExtensionRecord, ExtensionSchemas, Inspected, Library, MiddlewareRecord};
use goondan_core::{Error, ErrorCode, ExtensionDescriptor, ExtensionName, LayerInfo, MiddlewareOptions, Result};

use crate::libraries::{Declared, DeclaredTool, Libraries, LibraryEntry};

/// Loads the libraries that a bundle names. Their code runs with all rights of the program, so load only libraries that
/// you trust.
///
/// A file with the content of a library that is already loaded is not loaded again: its extensions are the same ones.
///
/// ```no_run
/// # async fn example() -> goondan::Result<()> {
/// use goondan::Bundle;
/// use goondan::bundle::Plugins;
/// use goondan::store::MemoryStore;
///
/// let agents = Bundle::load("examples/dynamic")?.build_with(MemoryStore::new(), &Plugins::new()).await?;
/// if let Some(agent) = agents.get("guide") {
///     let turn = agent.instance("user:42").await?.run("hi").await?;
///     println!("{}", turn.text());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Plugins(());

impl Plugins {
    /// Creates it without loading anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inspects the library of an entry without running its code. Checks that it contains the extension, and that the
    /// file has the digest that the entry pins, if any.
    ///
    /// # Errors
    /// The errors of [`Library::inspect`] and [`Inspected::extension`]; `E_EXT_LOAD` with both digests when the file
    /// has another one.
    pub fn inspect(&self, library: &LibraryEntry) -> Result<Inspected> {
        let inspected = Library::inspect(&library.file)?;
        if let Some(pinned) = &library.sha256 {
            let actual = inspected.sha256()?;
            if actual != *pinned {
                let file = library.file.display();
                let message = format!("`{file}` has the SHA-256 digest {actual}; the bundle pins {pinned}");
                return Err(Error::new(ErrorCode::EXT_LOAD, message)
                    .suggest("put the right file there; or if this one is right, write its digest as `spec.sha256`"));
            }
        }
        library.record(&inspected)?;
        Ok(inspected)
    }
}

impl LibraryEntry {
    /// Returns the extension of the library that the entry means: the one after the `#`, or else the only one, or the
    /// one with the name in the bundle.
    ///
    /// # Errors
    /// `E_EXT_LOAD` if the library has no such extension; the message lists those that it has.
    pub fn record<'a>(&self, inspected: &'a Inspected) -> Result<&'a ExtensionRecord> {
        match &self.extension {
            Some(extension) => inspected.named_extension(extension.as_str()),
            None => inspected.extension(self.name.as_str()),
        }
    }
}

impl Libraries for Plugins {
    fn declared(&self, library: &LibraryEntry) -> Result<Declared> {
        let inspected = self.inspect(library)?;
        let record = library.record(&inspected)?;
        let schemas = inspected.schemas().unwrap_or_default().iter().find(|schemas| schemas.name == record.name);
        let layers = record.middlewares.iter().map(|declared| layer(&library.name, declared)).collect();
        let tools = record.tools.iter().map(|tool| DeclaredTool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: None,
        });
        let (guard, requires, tools) = (record.guard, record.requires.clone(), tools.collect());
        let declared = Declared { guard, requires, config_schema: None, layers, tools };
        Ok(match schemas {
            Some(schemas) => declared.with_schemas(schemas),
            None => declared,
        })
    }

    fn load(&self, library: &LibraryEntry) -> Result<&'static ExtensionDescriptor> {
        let inspected = self.inspect(library)?;
        let name = library.record(&inspected)?.name.clone();
        inspected.load()?.extension(Some(&name))
    }
}

impl Declared {
    /// Adds the schemas that the library computed.
    #[must_use]
    pub fn with_schemas(mut self, schemas: &ExtensionSchemas) -> Self {
        self.config_schema = Some(schemas.config.clone());
        for tool in &mut self.tools {
            let found = schemas.tools.iter().find(|schema| schema.name == tool.name);
            tool.parameters = found.map(|schema| schema.parameters.clone());
        }
        self
    }
}

fn layer(extension: &ExtensionName, declared: &MiddlewareRecord) -> LayerInfo {
    let options = MiddlewareOptions::priority(declared.priority).named(declared.function.clone());
    let options = declared.before.iter().fold(options, |options, name| options.before(name.clone()));
    let options = declared.after.iter().fold(options, |options, name| options.after(name.clone()));
    LayerInfo::new(extension.clone(), declared.kind, options)
}
