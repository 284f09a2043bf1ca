//! The runtime's side of an extension's [`ExtensionApi`](goondan_core::ExtensionApi).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::host::panic::drop_guarded;
use goondan_core::{
    AgentDelegate, AgentReload, AgentReloadAnswer, AnyRegistration, BoxFuture, Deliveries, Error, ErrorCode, Event,
    EventHandler, EventPattern, ExtensionHost, ExtensionInfo, ExtensionName, LogHost, LogLevel, Result, Shown,
};
use goondan_lock::Lock;
use serde_json::{Map, Value};

use super::late::LateTools;
use super::services::Services;
use super::shared_state::alone;
use crate::bus::Owner;
use crate::registry::SharedTools;
use crate::spec::{AgentSpec, Opening};
use crate::state::StateCell;

/// One extension's access to its conversation. Extensions keep it through clones of their `ExtensionApi`.
pub(crate) struct ExtensionHandle {
    extension: ExtensionName,
    services: Arc<Services>,
    owner: Owner,
    /// A copy of the stored state. It becomes the stored state when the extension becomes active.
    state: Arc<StateCell>,
    /// Shared by the instances of the agent.
    tools: Arc<SharedTools>,
    opening: Opening,
    stage: Lock<Stage>,
}

/// The registrations that an extension may make.
enum Stage {
    /// Everything: `#[init]` runs.
    Registering(Vec<AnyRegistration>),
    /// Tools.
    Active,
    /// Nothing: it has cleaned up.
    Ended,
}

impl ExtensionHandle {
    pub(super) fn new(extension: ExtensionName, services: Arc<Services>, agent: &AgentSpec) -> Arc<Self> {
        let state = services.states.copy_of(&extension);
        let owner = services.bus.new_owner(extension.clone());
        let (tools, opening) = (Arc::clone(&agent.tools), agent.opening.clone());
        let stage = Lock::new(Stage::Registering(Vec::new()));
        Arc::new(Self { extension, services, owner, state, tools, opening, stage })
    }

    /// Ends registration, and returns the registrations.
    pub(super) fn end_registration(&self) -> Vec<AnyRegistration> {
        match std::mem::replace(&mut *self.stage.lock(), Stage::Active) {
            Stage::Registering(registrations) => registrations,
            Stage::Active | Stage::Ended => Vec::new(),
        }
    }

    /// Ends the registration of tools too.
    pub(super) fn end(&self) {
        *self.stage.lock() = Stage::Ended;
    }

    /// Returns the number that distinguishes this extension from others, also from those that had its name before.
    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(super) fn late(&self) -> &LateTools {
        &self.services.late
    }

    /// Checks a tool, and shares its description.
    fn checked(&self, registration: AnyRegistration) -> Result<AnyRegistration> {
        let AnyRegistration::Tool(item, handler) = registration else { return Ok(registration) };
        let name = item.name.clone();
        match self.tools.describe(item, &self.extension) {
            Ok(described) => Ok(AnyRegistration::Tool(described.item, handler)),
            Err(error) => {
                drop_guarded(&self.extension, || drop(handler));
                Err(error.at(&self.extension, format!("tool `{name}`")))
            }
        }
    }

    /// Makes this extension's state the one that is stored.
    pub(super) fn take_over_state(&self) {
        self.services.states.hand_over(&self.extension, &self.state);
    }

    /// Starts a subscription that the extension owns.
    pub(super) fn subscribe(&self, pattern: EventPattern, limit: Deliveries, handler: Arc<dyn EventHandler>) -> u64 {
        self.services.bus.subscribe(Some(self.owner.clone()), pattern, limit, handler)
    }

    /// Ends all subscriptions that the extension owns.
    pub(super) fn unsubscribe_all(&self) {
        self.services.bus.unsubscribe_owner(&self.owner);
    }
}

impl ExtensionHost for ExtensionHandle {
    fn extension(&self) -> &ExtensionName {
        &self.extension
    }

    fn register(&self, registration: AnyRegistration) -> Result<()> {
        let registration = self.checked(registration)?;
        let mut stage = self.stage.lock();
        match (&mut *stage, registration) {
            (Stage::Registering(registrations), registration) => {
                registrations.push(registration);
                Ok(())
            }
            (Stage::Active, AnyRegistration::Tool(item, handler)) => {
                self.services.late.add(&self.owner, item, handler);
                Ok(())
            }
            (Stage::Active | Stage::Ended, registration) => {
                drop(stage);
                drop_guarded(&self.extension, || drop(registration));
                Err(Error::new(ErrorCode::EXT_INIT, "registration is over")
                    .suggest(
                        "register in `#[init]`: only tools can be registered later, as long as the extension lives",
                    )
                    .at(&self.extension, "registration"))
            }
        }
    }

    fn state(&self) -> Option<Value> {
        self.state.get()
    }

    fn update_state(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        self.state.update(&self.extension, change)?;
        self.services.state_changed();
        Ok(())
    }

    fn shared_state(&self) -> Result<Option<Value>> {
        let shared = self.services.store.shared_state(&self.extension);
        shared.map_err(|error| error.at(&self.extension, "shared_state"))
    }

    fn update_shared_state(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        let updated = alone(|| self.services.store.update_shared_state(&self.extension, change));
        updated.map_err(|error| error.at(&self.extension, "shared_state"))
    }

    fn subscribe(&self, pattern: EventPattern, limit: Deliveries, handler: Arc<dyn EventHandler>) -> u64 {
        Self::subscribe(self, pattern, limit, handler)
    }

    fn unsubscribe(&self, subscription: u64) {
        self.services.bus.unsubscribe(subscription);
    }

    fn emit(&self, event: Event) {
        self.services.emit(Some(&self.extension), event);
    }

    fn show(&self, shown: Shown) {
        self.services.showing.show(&self.extension, shown);
    }

    fn delegate(&self, delegation: AgentDelegate) {
        self.services.delegate(Some(&self.extension), delegation);
    }

    fn reload(&self, request: AgentReload) -> BoxFuture<'static, AgentReloadAnswer> {
        self.services.request_reload(&self.extension, request)
    }

    fn info(&self) -> Result<ExtensionInfo> {
        let services = &self.services;
        let (extensions, bundle_files, secret_variables) = services.present();
        Ok(ExtensionInfo {
            extension: self.extension.clone(),
            agent: services.id.agent.clone(),
            instance: services.id.key.clone(),
            workspace: services.store.workspace().map(str::to_owned),
            bundle_root: self.opening.bundle_root.as_deref().map(Path::to_owned),
            inspect: self.opening.inspect,
            conversation: services.number,
            extensions,
            bundle_files,
            secret_variables,
        })
    }

    fn state_dir(&self) -> Result<PathBuf> {
        self.services.store.extension_dir(&self.extension).map_err(|error| error.at(&self.extension, "state_dir"))
    }
}

impl LogHost for ExtensionHandle {
    fn log(&self, level: LogLevel, text: &str, fields: &Map<String, Value>) {
        /// `tracing` needs the level as a constant.
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: "goondan::extension",
                    $level,
                    agent = %self.services.id.agent,
                    instance = %self.services.id.key,
                    extension = %self.extension,
                    fields = %AsJson(fields),
                    "{text}"
                )
            };
        }
        match level {
            LogLevel::Debug => line!(tracing::Level::DEBUG),
            LogLevel::Warn => line!(tracing::Level::WARN),
            LogLevel::Error => line!(tracing::Level::ERROR),
            _ => line!(tracing::Level::INFO),
        }
    }
}

/// Structured values as JSON, formatted only if a subscriber records the line.
struct AsJson<'a>(&'a Map<String, Value>);

impl std::fmt::Display for AsJson<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = serde_json::to_string(self.0).map_err(|_| std::fmt::Error)?;
        f.write_str(&text)
    }
}
