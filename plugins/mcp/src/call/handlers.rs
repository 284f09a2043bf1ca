//! The handlers of the model's calls.

use std::sync::Arc;

use goondan::extension::ExtensionApi;
use goondan::name::ExtensionName;
use goondan::tool::{Presentation, Presenter, ShownCall, ToolContext, ToolHandler, ToolReply};
use goondan::{BoxFuture, Error, Map, Result, Value, json};

use super::{asked, reply};
use crate::config::Config;
#[cfg(feature = "http")]
use crate::config::Transport;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::server::{Answer, Caller, Client, Resource};

/// A server, with the config of the extension that uses it.
#[derive(Clone)]
pub(crate) struct ConfiguredServer {
    /// The name of the extension.
    pub(crate) extension: ExtensionName,
    pub(crate) connection: Arc<Connection>,
    pub(crate) config: Arc<Config>,
}

impl ConfiguredServer {
    /// Asks the server something. `what` is the name of the tool.
    async fn ask<T, F>(&self, what: &str, question: impl FnOnce(Client) -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        self.connection.ask(&self.config.limits, [self.extension.as_str(), what], question).await
    }
}

/// Forwards calls to a tool of the server.
// PATTERN-MCP-04
pub(crate) struct Call {
    pub(crate) server: ConfiguredServer,
    /// The name at the server.
    pub(crate) tool: String,
    /// The name that the server gives it for people.
    pub(crate) title: Option<String>,
    /// By which a token is asked for, if a person has to sign in again.
    pub(crate) api: ExtensionApi,
}

/// Answers the tools for things that are no tools at the server.
// PATTERN-MCP-10
pub(crate) struct Extra {
    pub(crate) server: ConfiguredServer,
    pub(crate) kind: ExtraTool,
}

/// A tool for things that are no tools at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtraTool {
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

impl ExtraTool {
    pub(crate) const RESOURCES: [Self; 2] = [Self::ListResources, Self::ReadResource];
    pub(crate) const PROMPTS: [Self; 2] = [Self::ListPrompts, Self::GetPrompt];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::ListResources => "Lists the resources of the server.",
            Self::ReadResource => "Reads a resource of the server.",
            Self::ListPrompts => "Lists the prompts of the server, with their arguments.",
            Self::GetPrompt => "Fills in a prompt of the server.",
        }
    }

    pub(crate) fn parameters(self) -> Value {
        let text = json!({ "type": "string" });
        match self {
            Self::ListResources | Self::ListPrompts => json!({ "type": "object", "properties": {} }),
            Self::ReadResource => json!({ "type": "object", "properties": { "uri": text }, "required": ["uri"] }),
            Self::GetPrompt => json!({
                "type": "object",
                "properties": {
                    "name": text,
                    "arguments": { "type": "object", "additionalProperties": text },
                },
                "required": ["name"],
            }),
        }
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        // The arguments of a call were checked to be an object.
        _ => Map::new(),
    }
}

/// Returns the resources as JSON.
fn listed(resources: &[Resource]) -> Value {
    let all = resources.iter().map(|Resource { uri, name, description, media_type }| {
        json!({ "uri": uri, "name": name, "description": description, "mimeType": media_type })
    });
    all.collect()
}

impl Call {
    async fn called(&self, ctx: &ToolContext<'_>, arguments: Map<String, Value>) -> Result<Answer> {
        let (caller, heard) = Caller::new(format!("{}:{}", ctx.agent_name(), ctx.instance_key()));
        let tool = self.tool.clone();
        let asked = self.server.ask(&self.tool, async |client| client.call(tool, arguments, &caller).await);
        asked::hearing(ctx, heard, asked).await
    }

    /// Lets the person sign in, if a call failed because of that: it was not sent. Returns false otherwise.
    ///
    /// # Errors
    /// When there is no access.
    #[cfg(feature = "http")]
    async fn signed_in(&self, ctx: &ToolContext<'_>, error: &Error) -> Result<bool> {
        let transport = self.server.config.transport()?;
        let Some(Transport::Http { auth: Some(auth), .. }) = transport else { return Ok(false) };
        if *error.code() != *goondan_oauth_client::code::AUTHORIZATION_REQUIRED {
            return Ok(false);
        }
        goondan_oauth_client::get_access_token_in_call(ctx, &self.api, &auth.request()).await.map(|_| true)
    }

    #[cfg(not(feature = "http"))]
    #[expect(clippy::unused_async, reason = "as the other one")]
    async fn signed_in(&self, _: &ToolContext<'_>, _: &Error) -> Result<bool> {
        Ok(false)
    }
}

impl ToolHandler for Call {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move {
            let arguments = members(input);
            let answer = match self.called(ctx, arguments.clone()).await {
                Err(error) if self.signed_in(ctx, &error).await? => self.called(ctx, arguments).await?,
                answer => answer?,
            };
            reply::reply(ctx, answer, self.server.config.limits.output_chars)
        })
    }

    fn presenter(&self) -> Option<&dyn Presenter> {
        self.title.is_some().then_some(self)
    }
}

/// The title is a text of others. It is shown behind the name of the tool, as all that a presenter says.
// PRESENT-01
impl Presenter for Call {
    fn present(&self, call: &ShownCall<'_>) -> Result<Presentation> {
        let Presentation { line, .. } = Presentation::of_arguments(call.args());
        let title = self.title.as_deref().unwrap_or_default();
        Ok(Presentation::new(if line.is_empty() { title.to_owned() } else { format!("{title}: {line}") }))
    }
}

impl ToolHandler for Extra {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move {
            let (server, what) = (&self.server, self.kind.name());
            let length = server.config.limits.output_chars;
            let mut input = members(input);
            let mut text = |key: &str| match input.remove(key) {
                Some(Value::String(text)) => text,
                // The schema requires a text.
                _ => String::new(),
            };
            match self.kind {
                ExtraTool::ListResources => {
                    let (all, _) = server.ask(what, |client| async move { client.resources().await }).await?;
                    reply::value_reply(ctx, listed(&all), length)
                }
                ExtraTool::ReadResource => {
                    let uri = text("uri");
                    let read = server.ask(what, |client| async move { client.read(&uri).await }).await?;
                    reply::reply(ctx, read, length)
                }
                ExtraTool::ListPrompts => {
                    let all = server.ask(what, |client| async move { client.prompts().await }).await?;
                    reply::value_reply(ctx, all, length)
                }
                ExtraTool::GetPrompt => {
                    let name = text("name");
                    let arguments = input.remove("arguments").map(members).unwrap_or_default();
                    let asked = server.ask(what, |client| async move { client.prompt(&name, arguments).await });
                    reply::reply(ctx, asked.await?, length)
                }
            }
        })
    }
}
