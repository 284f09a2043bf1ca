//! The choices of middlewares for the model call of a step: the tools, the model, its options.

use goondan_core::host::{ModelOptionsExt, ToolCatalogExt};
use goondan_core::{ModelName, ModelOptions, Result, ToolCatalog};

use crate::attach::Generation;
use crate::ports::model::Model;

/// It is made with the step, because every step starts with all tools and the agent's own model.
pub(super) struct CallSettings {
    pub(super) catalog: ToolCatalog,
    /// The catalog as it was before middlewares changed it.
    pub(super) registered: ToolCatalog,
    /// The model that a middleware chose.
    pub(super) model: Option<ModelName>,
    /// The options that middlewares have set; boxed, because few steps have any.
    pub(super) options: Option<Box<ModelOptions>>,
}

impl CallSettings {
    // F-TOOL
    pub(super) fn new(generation: &Generation) -> Self {
        let catalog = generation.registered.tools().catalog();
        Self { registered: catalog.clone(), catalog, model: None, options: None }
    }

    /// Checks the tools and the options that middlewares have changed.
    pub(super) fn check(&mut self, generation: &Generation) -> Result<()> {
        if !generation.registered.tools().offers(&self.catalog) {
            self.catalog = std::mem::take(&mut self.catalog).checked()?;
        }
        if let Some(options) = self.options.take() {
            self.options = Some(Box::new(options.checked()?));
        }
        Ok(())
    }

    /// Returns the model of this step: the agent's, unless a middleware chose another one (API-11).
    pub(super) fn model<'a>(&self, generation: &'a Generation) -> Result<&'a dyn Model> {
        let agent = &generation.spec;
        match &self.model {
            None => Ok(&*agent.model),
            Some(name) => agent.named_model(name.as_str()),
        }
    }
}
