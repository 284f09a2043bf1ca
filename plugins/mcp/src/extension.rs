//! The extension: it attaches to a server, and keeps the catalog of each step up to date.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use goondan::prelude::*;
use goondan::tool::{Effect, ToolItem};
use goondan::{ErrorCode, json};
use goondan_lock::Lock;
use process::Environment;
use tokio::task::JoinHandle;
use tokio::time::timeout;

#[cfg(feature = "http")]
use crate::call::SignIn;
use crate::call::{Call, ConfiguredServer, Extra, ExtraTool, SIGN_IN};
use crate::config::{Config, Mode, Transport};
use crate::connection::{Connection, User, pool};
#[cfg(feature = "http")]
use crate::failure;
use crate::offer::{Changes, LONGEST_EXTENSION, Tools};
use crate::server::Resource;

/// The longest wait of a step for a server that lists its offers.
const STEP_WAIT: Duration = Duration::from_secs(2);
/// The most resources that the model is shown.
const RESOURCES: usize = 50;

/// The extension.
pub struct Mcp {
    api: ExtensionApi,
    /// `None` with an empty config, and when nothing should be started.
    attached: Option<Attached>,
}

/// A server that is in use.
struct Attached {
    server: ConfiguredServer,
    /// Taken when the extension ends.
    user: Lock<Option<User>>,
    tools: Lock<Tools>,
    /// The revision of the offers that `tools` has.
    seen: AtomicU64,
    /// Starts a server that is not required and was not there.
    starting: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    resources_id: String,
    /// The name of the tool by which a person signs in.
    sign_in: String,
}

/// The tools, resources and prompts of an MCP server.
#[goondan::extension(name = "mcp")]
impl Mcp {
    #[init]
    async fn new(api: ExtensionApi, config: Config, ctx: InitContext) -> Result<Self> {
        // PATTERN-MCP-13
        let Some(transport) = config.transport()?.cloned() else {
            api.logger().warn("no MCP server is configured: write `transport` in the config of the extension");
            return Ok(Self { api, attached: None });
        };
        if ctx.extension().as_str().len() > LONGEST_EXTENSION {
            let message = format!("the name has more than {LONGEST_EXTENSION} characters");
            return Err(Error::new(ErrorCode::EXT_CONFIG, message)
                .suggest("choose a shorter one: the names of the tools begin with it"));
        }
        let connection = pool::connection(&transport, config.protocol, config.attach, config.limits.sizes(), &ctx)?;
        if ctx.inspect() {
            return Ok(Self { api, attached: None });
        }
        if let (Transport::Stdio { .. }, Some(note)) = (&transport, Environment::basic().note()) {
            api.logger().debug(note);
        }
        let attached = Attached::new(connection, config, &api, &ctx);
        attached.start(&api).await?;
        Ok(Self { api, attached: Some(attached) })
    }

    /// Offers in the step the present tools of the server.
    #[middleware(step, priority = -500)]
    async fn current(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if let Some(attached) = &self.attached {
            attached.catch_up(&self.api, ctx).await;
        }
        next.run(ctx).await
    }

    /// Lists the resources in a message, inside of the layers that remove messages.
    #[middleware(step, priority = 100)]
    async fn context(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if let Some(attached) = self.attached.as_ref().filter(|attached| attached.server.config.expose.resources) {
            attached.show_resources(ctx);
        }
        next.run(ctx).await
    }

    /// Says how the server is, for programs that show it.
    #[on("status.request")]
    async fn report(&self) -> Result<()> {
        if let Some(Attached { server, tools, .. }) = &self.attached {
            let text = server.connection.status(&server.config.limits).to_string();
            let report = json!({ "extension": server.extension, "text": text, "digests": tools.lock().digests() });
            self.api.events().emit("status.report", (report,));
        }
        Ok(())
    }

    #[cleanup]
    async fn close(&self) {
        if let Some(attached) = &self.attached {
            attached.close().await;
        }
    }
}

impl Attached {
    fn new(connection: Arc<Connection>, config: Config, api: &ExtensionApi, ctx: &InitContext) -> Self {
        let extension = ctx.extension();
        let own = extra_tools(&config).map(ExtraTool::name).chain([SIGN_IN]);
        let reserved = own.map(|name| format!("{extension}__{name}")).collect();
        if config.expose.resources {
            connection.listing().want_resources();
        }
        let tools = Tools::new(extension.clone(), config.tools.clone(), config.limits.tools, reserved);
        Self {
            resources_id: format!("mcp:{extension}:resources"),
            sign_in: format!("{extension}__{SIGN_IN}"),
            user: Lock::new(Some(Arc::clone(&connection).join(api.clone()))),
            server: ConfiguredServer { extension: extension.clone(), connection, config: Arc::new(config) },
            tools: Lock::new(tools),
            seen: AtomicU64::new(0),
            starting: tokio::sync::Mutex::default(),
        }
    }

    /// Starts the server, and registers its offers.
    async fn start(&self, api: &ExtensionApi) -> Result<()> {
        let ConfiguredServer { extension, connection, config } = &self.server;
        match connection.start(&config.limits).await {
            Err(error) if config.required.0 => return Err(error),
            #[cfg(feature = "http")]
            Err(error) if error.details().contains_key(failure::SIGN_IN) => self.offer_sign_in(api)?,
            Err(error) => api.logger().warn(format!("the MCP server is not there: {}", error.report())),
            Ok(()) => {}
        }
        for kind in extra_tools(config) {
            let item = ToolItem::new(&format!("{extension}__{}", kind.name()))?.describe(kind.description());
            let item = item.parameters(kind.parameters()).effect(Effect::Read).timeout(config.tools.timeout());
            api.tools().register(item, Extra { server: self.server.clone(), kind })?;
        }
        self.register(api);
        Ok(())
    }

    /// Registers the tool by which the person signs in.
    // ASK-04
    #[cfg(feature = "http")]
    fn offer_sign_in(&self, api: &ExtensionApi) -> Result<()> {
        let Some(Transport::Http { auth: Some(auth), .. }) = self.server.config.transport()? else { return Ok(()) };
        let item = ToolItem::new(&self.sign_in)?.describe(SignIn::DESCRIPTION).effect(Effect::Idempotent).asks();
        let (tools, server, auth) = (api.tools(), self.server.clone(), auth.clone());
        tools.register(item, SignIn { server, api: api.clone(), auth })
    }

    /// Registers the offers of the server since the last time.
    fn register(&self, api: &ExtensionApi) -> Changes {
        let revision = self.server.connection.listing().revision();
        if self.seen.swap(revision, Ordering::AcqRel) == revision || !self.server.config.expose.tools {
            return Changes::default();
        }
        let offers = self.server.connection.listing().offers();
        let mut tools = self.tools.lock();
        let changes = tools.update(&offers, |item, tool| {
            api.tools().register(
                item.clone(),
                Call {
                    server: self.server.clone(),
                    tool: tool.name.clone(),
                    title: tool.title.clone(),
                    api: api.clone(),
                },
            )
        });
        drop(tools);
        for warning in &changes.warnings {
            api.logger().warn(format!("MCP server: {warning}"));
        }
        changes
    }

    /// Brings the tools of this step up to date.
    async fn catch_up(&self, api: &ExtensionApi, ctx: &mut StepContext<'_>) {
        let listing = self.server.connection.listing();
        if listing.revision() == 0 {
            self.start_later().await;
        }
        listing.settled(STEP_WAIT).await;
        if listing.revision() != self.seen.load(Ordering::Acquire) {
            let Changes { added, changed, removed, .. } = self.register(api);
            if !(added.is_empty() && changed.is_empty() && removed.is_empty()) {
                let names = |items: &[ToolItem]| items.iter().map(|item| item.name.to_string()).collect::<Vec<_>>();
                let event = json!({ "added": names(&added), "removed": removed, "changed": names(&changed) });
                api.events().emit("mcp.toolsChanged", (event,));
            }
            // The catalog of this step was made before.
            for item in added.into_iter().chain(changed) {
                ctx.tool_catalog_mut().insert(item);
            }
        }
        // Who has signed in does not do it again.
        if listing.revision() > 0 && ctx.tool_catalog().get(&self.sign_in).is_some() {
            ctx.tool_catalog_mut().retain(|item| item.name != *self.sign_in);
        }
        let withdrawn = self.tools.lock().withdrawn();
        if let Some(withdrawn) = withdrawn {
            ctx.tool_catalog_mut().retain(|item| !withdrawn.contains(&item.name));
        }
    }

    /// Starts a server that was not there when the conversation was opened.
    async fn start_later(&self) {
        if self.server.config.attach.mode == Mode::Stateless && self.server.config.required.0 {
            return;
        }
        let mut starting = self.starting.lock().await;
        let task = starting.get_or_insert_with(|| {
            let ConfiguredServer { connection, config, .. } = self.server.clone();
            tokio::spawn(async move {
                // Until it is there, calls say why it is not.
                let _ = connection.start(&config.limits).await;
            })
        });
        if timeout(STEP_WAIT, &mut *task).await.is_ok() {
            *starting = None;
        }
    }

    /// Keeps one message that lists the resources, and changes it only when they have changed.
    // PATTERN-MCP-10
    fn show_resources(&self, ctx: &mut StepContext<'_>) {
        let id = self.resources_id.as_str();
        let offers = self.server.connection.listing().offers();
        let text = (!offers.resources.is_empty()).then(|| describe(&offers.resources));
        let present =
            ctx.conversation().iter().find(|message| message.id() == id).map(|message| message.text().into_owned());
        let message = |text: String| Message::system(text).with_id(id).with_metadata("pinned", true);
        match (text, present) {
            (Some(text), None) => ctx.emit(MessageEvent::append(message(text))),
            (Some(text), Some(present)) if text != present => ctx.emit(MessageEvent::replace(id, message(text))),
            (None, Some(_)) => ctx.emit(MessageEvent::remove(id)),
            _ => {}
        }
    }

    async fn close(&self) {
        let user = self.user.lock().take();
        if let Some(user) = user {
            user.leave(self.server.config.limits.shutdown()).await;
        }
    }
}

fn extra_tools(config: &Config) -> impl Iterator<Item = ExtraTool> + use<> {
    let resources = ExtraTool::RESOURCES.into_iter().filter(|_| config.expose.resources);
    let prompts = ExtraTool::PROMPTS.into_iter().filter(|_| config.expose.prompts);
    resources.chain(prompts).collect::<Vec<_>>().into_iter()
}

/// Returns a list of the resources for the model.
fn describe(resources: &[Resource]) -> String {
    let mut text = "Resources of the server, which can be read by their URI:".to_owned();
    for Resource { uri, name, description, media_type } in resources.iter().take(RESOURCES) {
        let media_type = media_type.as_deref().map(|media_type| format!(", {media_type}")).unwrap_or_default();
        // On one line, so that it cannot look like another resource.
        let words = description.as_deref().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        let description = words.map(|words| format!(": {words}")).unwrap_or_default();
        text.push_str(&format!("\n- {uri} ({name}{media_type}){description}"));
    }
    if let Some(more @ 1..) = resources.len().checked_sub(RESOURCES) {
        text.push_str(&format!("\n{more} more are listed by the tool that lists resources."));
    }
    text
}
