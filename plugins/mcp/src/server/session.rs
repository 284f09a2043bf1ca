//! A session of the protocol.

use std::fmt::Display;
use std::sync::Arc;

use super::protocol::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest, ContentBlock,
    CustomResult, Extensions, GetPromptRequestParams, ListPromptsRequest, ListResourcesRequest, ListToolsRequest,
    MetaObject, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, RequestId, ResourceContents,
    ServerPeerInfo, ServerResult, SubscriptionFilter,
};
use super::protocol::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RoleClient, RunningService,
    ServiceError,
};
#[cfg(feature = "http")]
use super::protocol::transport::StreamableHttpClientTransport;
#[cfg(feature = "http")]
use super::protocol::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use super::protocol::transport::{DynamicTransportError, Transport};
use goondan::conversation::FilePart;
#[cfg(feature = "http")]
use goondan::error::StdErr;
use goondan::{Error, Map, Value, json};
use goondan_text::visible;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};

use super::answer::{Answer, Block, Resource, Tool};
use super::asker::Asker;
#[cfg(feature = "http")]
use super::bearer::Requests;
use super::clean::{make_members_visible, make_visible};
use super::digest::digest;
use super::elicited;
use super::hearing::{Announced, Hearing};
#[cfg(feature = "http")]
use super::http::Endpoint;
use super::message::{Abridged, is_unreadable};
use super::pipes::Pipes;
use super::protocol;
use super::running::{Caller, Response, RunningCall, RunningCalls};
use super::users::Users;
use crate::config::{Protocol, Sizes};
use crate::failure::{self, Failure};

/// The most times that a call is sent, with answers that the server needs.
const ROUNDS: usize = 10;

/// The most pages of a list that are read.
const PAGES: usize = 100;

/// The beginning of a session.
pub(crate) struct Begin {
    pub(crate) protocol: Protocol,
    pub(crate) announced: Arc<Announced>,
    pub(crate) users: Users,
    pub(crate) sizes: Sizes,
}

/// An open session, which ends when it is dropped.
pub(crate) struct Session {
    running: RunningService<RoleClient, Asker>,
    calls: RunningCalls,
    sizes: Sizes,
}

/// Asks the server of a session.
#[derive(Clone)]
pub(crate) struct Client {
    peer: Peer<RoleClient>,
    calls: RunningCalls,
    sizes: Sizes,
}

/// The announcements that a server without a handshake sends. They are counted where messages are read.
pub(crate) struct Subscription(protocol::service::Subscription);

/// Tells the server that a request is not waited for any more, if it is dropped before it is emptied.
struct CancelOnDrop(Option<(Peer<RoleClient>, RequestId)>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((peer, id)) = self.0.take() else { return };
        let params = CancelledNotificationParam::new(Some(id), Some("the call was cancelled".to_owned()));
        // The session may be over, and then there is nothing to cancel.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { peer.notify_cancelled(params).await });
        }
    }
}

/// Returns the version that a handshake proposes, and how the session begins.
fn lifecycle(protocol: Protocol) -> (ProtocolVersion, ClientLifecycleMode) {
    let newest = || vec![ProtocolVersion::V_2026_07_28];
    let discover = ClientLifecycleMode::Discover { preferred_versions: newest() };
    let auto = ClientLifecycleMode::Auto { preferred_versions: newest(), legacy_version: None };
    let handshake = |version| (version, ClientLifecycleMode::Initialize);
    match protocol {
        Protocol::Auto => (ProtocolVersion::LATEST_WITH_INITIALIZE, auto),
        Protocol::Legacy => handshake(ProtocolVersion::LATEST_WITH_INITIALIZE),
        Protocol::V2026_07_28 => (ProtocolVersion::V_2026_07_28, discover),
        Protocol::V2025_11_25 => handshake(ProtocolVersion::V_2025_11_25),
        Protocol::V2025_06_18 => handshake(ProtocolVersion::V_2025_06_18),
        Protocol::V2025_03_26 => handshake(ProtocolVersion::V_2025_03_26),
        Protocol::V2024_11_05 => handshake(ProtocolVersion::V_2024_11_05),
    }
}

impl Session {
    /// Begins with the server behind a pair of pipes.
    pub(crate) async fn over_pipes(
        output: impl AsyncRead + Send + Unpin + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
        begin: Begin,
    ) -> Result<Self, Error> {
        let pipes = Pipes::new(output, input, begin.sizes);
        Self::over(pipes, begin).await
    }

    /// Begins with the server at a URL.
    #[cfg(feature = "http")]
    pub(crate) async fn over_http(endpoint: &Endpoint, requests: Requests, begin: Begin) -> Result<Self, Error> {
        let config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
        let config = config.custom_headers(endpoint.headers.clone());
        Self::over(StreamableHttpClientTransport::with_client(requests, config), begin).await
    }

    async fn over(
        inner: impl Transport<RoleClient> + 'static,
        Begin { protocol, announced, users, sizes }: Begin,
    ) -> Result<Self, Error> {
        let (version, lifecycle) = lifecycle(protocol);
        let calls = RunningCalls::default();
        let heard = Hearing { inner, announced, users, calls: calls.clone() };
        let running = Asker { version, calls: calls.clone() }.serve_with_lifecycle(heard, lifecycle).await;
        Ok(Self { running: running.map_err(|error| Error::new(failure::START, reason(&error)))?, calls, sizes })
    }

    pub(crate) fn client(&self) -> Client {
        Client { peer: self.running.peer().clone(), calls: self.calls.clone(), sizes: self.sizes }
    }

    /// Returns whether the server can be asked.
    pub(crate) fn is_open(&self) -> bool {
        !self.running.is_closed() && !self.running.is_transport_closed()
    }

    /// Ends the session, and tells the server.
    pub(crate) async fn close(mut self) {
        // It fails only if the task of the session has panicked, and then the session has ended too.
        let _ = self.running.close().await;
    }

    /// Returns a function that ends the session without waiting: calls that wait for an answer fail, and the input of
    /// the server is closed.
    pub(crate) fn closer(&self) -> impl FnOnce() + Send + use<> {
        let token = self.running.cancellation_token();
        move || token.cancel()
    }
}

impl Client {
    fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Returns the name that the server gives itself.
    pub(crate) fn server_name(&self) -> Option<String> {
        Some(self.info()?.server_info.as_ref()?.name.clone())
    }

    /// Asks for announcements; `None` if they come anyway, or never.
    pub(crate) async fn subscribe(&self) -> Option<Subscription> {
        let info = self.info().filter(|info| !info.protocol_version.has_initialize())?;
        let (tools, resources) = (info.capabilities.tools.as_ref(), info.capabilities.resources.as_ref());
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = tools.and_then(|tools| tools.list_changed).filter(|changed| *changed);
        filter.resources_list_changed =
            resources.and_then(|resources| resources.list_changed).filter(|changed| *changed);
        if filter == SubscriptionFilter::new() {
            return None;
        }
        self.peer.listen(filter).await.ok().map(Subscription)
    }

    /// Returns the tools of the server, and the problems with those that are missing.
    pub(crate) async fn tools(&self) -> Result<(Vec<Arc<Tool>>, Vec<String>), Failure> {
        let (mut tools, mut pages) = (Vec::new(), Pages::new(self.sizes));
        if self.info().is_none_or(|info| info.capabilities.tools.is_none()) {
            return Ok((tools, pages.problems));
        }
        while let Some(params) = pages.next() {
            // Not by `list_tools`: that fails for all tools if one cannot be read, and it caches.
            let request = ListToolsRequest { params, ..ListToolsRequest::default() };
            match self.peer.send_request(ClientRequest::ListToolsRequest(request)).await.map_err(failed)? {
                ServerResult::ListToolsResult(page) => {
                    if pages.fits(page.meta, page.next_cursor) {
                        tools.extend(page.tools.into_iter().map(|tool| Arc::new(Tool::from(tool))));
                    }
                }
                ServerResult::CustomResult(CustomResult(page)) => {
                    let page =
                        Page::deserialize(page).map_err(|error| unsupported(format!("the list of tools: {error}")))?;
                    if !pages.fits(page.meta, page.next_cursor) {
                        continue;
                    }
                    for tool in page.tools {
                        let name = tool["name"].as_str().unwrap_or("without a name").to_owned();
                        match protocol::model::Tool::deserialize(tool) {
                            Ok(tool) => tools.push(Arc::new(tool.into())),
                            Err(error) => pages.problems.push(format!("`{name}`: {error}")),
                        }
                    }
                }
                _ => return Err(unsupported("the list of tools is of another kind")),
            }
        }
        Ok((tools, pages.problems))
    }

    /// Returns the resources of the server, and the problems with those that are missing.
    pub(crate) async fn resources(&self) -> Result<(Vec<Resource>, Vec<String>), Failure> {
        let (mut resources, mut pages) = (Vec::new(), Pages::new(self.sizes));
        if self.info().is_none_or(|info| info.capabilities.resources.is_none()) {
            return Ok((resources, pages.problems));
        }
        while let Some(params) = pages.next() {
            let request = ListResourcesRequest { params, ..ListResourcesRequest::default() };
            match self.peer.send_request(ClientRequest::ListResourcesRequest(request)).await.map_err(failed)? {
                ServerResult::ListResourcesResult(page) => {
                    if pages.fits(page.meta, page.next_cursor) {
                        resources.extend(page.resources.into_iter().map(Resource::from));
                    }
                }
                _ => return Err(unsupported("the list of resources is of another kind")),
            }
        }
        Ok((resources, pages.problems))
    }

    /// Returns the prompts of the server as JSON.
    pub(crate) async fn prompts(&self) -> Result<Value, Failure> {
        let (mut prompts, mut pages) = (Vec::new(), Pages::new(self.sizes));
        if self.info().is_none_or(|info| info.capabilities.prompts.is_none()) {
            return Ok(json!([]));
        }
        while let Some(params) = pages.next() {
            let request = ListPromptsRequest { params, ..ListPromptsRequest::default() };
            match self.peer.send_request(ClientRequest::ListPromptsRequest(request)).await.map_err(failed)? {
                ServerResult::ListPromptsResult(page) => {
                    if pages.fits(page.meta, page.next_cursor) {
                        prompts.extend(page.prompts);
                    }
                }
                _ => return Err(unsupported("the list of prompts is of another kind")),
            }
        }
        let mut prompts =
            json::to_value(prompts).map_err(|error| unsupported(format!("the list of prompts: {error}")))?;
        make_visible(&mut prompts);
        Ok(prompts)
    }

    /// Calls a tool. The server is told if the future is dropped. `caller` hears the server meanwhile, and
    /// answers its questions.
    // PATTERN-MCP-04, ASK-04
    pub(crate) async fn call(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        caller: &Caller,
    ) -> Result<Answer, Failure> {
        let running = self.calls.begin(caller);
        let mut params = CallToolRequestParams::new(tool).with_arguments(arguments);
        for _ in 0..ROUNDS {
            match self.call_once(params.clone(), &running).await {
                Ok(ServerResult::CallToolResult(result)) => return Ok(result.into()),
                Ok(ServerResult::InputRequiredResult(needed)) => {
                    let requests = needed.input_requests.unwrap_or_default();
                    params.input_responses = Some(elicited::respond(caller, requests).await?);
                    params.request_state = needed.request_state;
                }
                Ok(ServerResult::CreateTaskResult(_)) => return Err(unsupported("a task instead of a result")),
                // An answer without content is one all the same.
                Ok(ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_)) => return Ok(Answer::default()),
                Ok(ServerResult::CustomResult(CustomResult(Value::Object(members))))
                    if members.keys().all(|name| name == "_meta") =>
                {
                    return Ok(Answer::default());
                }
                Ok(_) => return Err(unsupported("another kind of result")),
                Err(ServiceError::McpError(error)) => match elicited::needed(&error) {
                    Some(needed) => {
                        for elicitation in needed {
                            if !matches!(elicited::ask(caller, elicitation).await, Response::Accept(_)) {
                                return Err(failed(ServiceError::McpError(error)));
                            }
                        }
                    }
                    None => return Err(failed(ServiceError::McpError(error))),
                },
                Err(error) => return Err(failed(error)),
            }
        }
        Err(unsupported(format_args!("it needs more than {ROUNDS} answers for one call")))
    }

    async fn call_once(
        &self,
        params: CallToolRequestParams,
        running: &RunningCall,
    ) -> Result<ServerResult, ServiceError> {
        let mut request = CallToolRequest::new(params);
        request.extensions = Extensions::default();
        let request = ClientRequest::CallToolRequest(request);
        let handle = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        running.set_token(handle.progress_token.0.to_string());
        let mut cancel = CancelOnDrop(Some((self.peer.clone(), handle.id.clone())));
        let answer = handle.await_response().await;
        cancel.0 = None;
        answer
    }

    /// Reads a resource.
    pub(crate) async fn read(&self, uri: &str) -> Result<Answer, Failure> {
        let read = self.peer.read_resource(ReadResourceRequestParams::new(uri)).await.map_err(failed)?;
        Ok(Answer { blocks: read.contents.into_iter().map(Block::from).collect(), structured: None, is_error: false })
    }

    /// Fills in a prompt.
    pub(crate) async fn prompt(&self, name: &str, arguments: Map<String, Value>) -> Result<Answer, Failure> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let prompt = self.peer.get_prompt(params).await.map_err(failed)?;
        let blocks = prompt.messages.into_iter().flat_map(|message| {
            let role = format!("{:?}:", message.role).to_lowercase();
            [Block::Text(role), message.content.into()]
        });
        Ok(Answer { blocks: blocks.collect(), structured: None, is_error: false })
    }
}

impl Subscription {
    /// Waits until the server ends it.
    pub(crate) async fn ended(&mut self) {
        while let Ok(Some(_)) = self.0.next().await {}
    }
}

/// Returns why a session did not begin, without names of types and without the URL, which may have a key in its query.
fn reason(error: &ClientInitializeError) -> String {
    let error = match error {
        ClientInitializeError::TransportError { error: DynamicTransportError { error, .. }, .. } => error,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return reason(fallback),
        ClientInitializeError::JsonRpcError(error) => return error.message.to_string(),
        error => return error.to_string(),
    };
    #[cfg(feature = "http")]
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => {
            let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
            return causes.last().map_or_else(|| "the request failed".to_owned(), ToString::to_string);
        }
        // There is no token.
        Some(StreamableHttpError::Io(error)) => return error.to_string(),
        _ => {}
    }
    error.to_string()
}

/// A page of tools, some of them unreadable.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Value>,
    #[serde(default)]
    next_cursor: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<MetaObject>,
}

/// The pages of a list, which are asked for one after the other.
struct Pages {
    /// The next one; `None` after the last one.
    next: Option<Option<PaginatedRequestParams>>,
    asked: usize,
    limit: usize,
    bytes: usize,
    /// The gaps of the list, for the log.
    problems: Vec<String>,
}

impl Pages {
    fn new(sizes: Sizes) -> Self {
        Self { next: Some(None), asked: 0, limit: sizes.list, bytes: 0, problems: Vec::new() }
    }

    /// Returns the parameters of the next request, if there is one.
    fn next(&mut self) -> Option<Option<PaginatedRequestParams>> {
        let next = self.next.take()?;
        if self.asked == PAGES {
            self.problems.push(format!("what is on more than {PAGES} pages"));
            return None;
        }
        self.asked += 1;
        Some(next)
    }

    /// Takes note of a page, and returns whether the list has room for its entries.
    fn fits(&mut self, meta: Option<MetaObject>, next: Option<String>) -> bool {
        let Abridged { bytes, left_out } = Abridged::of(meta);
        self.problems.extend(left_out);
        self.bytes += bytes;
        if self.bytes > self.limit {
            self.problems
                .push(format!("page {} and what is behind it: `limits.listBytes` is {}", self.asked, self.limit));
            return false;
        }
        self.next = next.map(|cursor| Some(PaginatedRequestParams::default().with_cursor(Some(cursor))));
        true
    }
}

fn failed(error: ServiceError) -> Failure {
    match error {
        #[cfg(feature = "http")]
        ServiceError::TransportSend(error) => unsent(error),
        #[cfg(not(feature = "http"))]
        ServiceError::TransportSend(_) => Failure::Gone,
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => Failure::Gone,
        ServiceError::McpError(error) if is_unreadable(&error) => Failure::Unreadable(error.message.into_owned()),
        ServiceError::McpError(error) => Failure::Answered(
            Error::new(failure::REFUSED, error.message.into_owned()).with_detail("code", error.code.0),
        ),
        error => unsupported(error),
    }
}

/// Returns why a request was not sent, or was refused before the server read it.
#[cfg(feature = "http")]
fn unsent(error: DynamicTransportError) -> Failure {
    match error.error.downcast::<StreamableHttpError<reqwest::Error>>().map(|error| *error) {
        Ok(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)) => {
            let error = Error::new(failure::REFUSED, "the MCP server refuses the authorization of the request");
            Failure::Answered(error.suggest("tell the user: `transport.auth` or the headers have to be changed"))
        }
        // There is no token.
        Ok(StreamableHttpError::Io(error)) => match error.into_inner().map(|error| error.downcast::<StdErr>()) {
            Some(Ok(error)) => Failure::Answered(error.into_inner()),
            _ => Failure::Gone,
        },
        _ => Failure::Gone,
    }
}

fn unsupported(what: impl Display) -> Failure {
    let error = Error::new(failure::UNSUPPORTED, format!("the MCP server sent what is not supported: {what}"));
    Failure::Answered(error.suggest("do without it"))
}

impl From<protocol::model::Tool> for Tool {
    fn from(tool: protocol::model::Tool) -> Self {
        let hint = |hint: fn(&protocol::model::ToolAnnotations) -> Option<bool>| {
            tool.annotations.as_ref().and_then(hint).unwrap_or_default()
        };
        let read_only = hint(|hints| hints.read_only_hint);
        let idempotent = hint(|hints| hints.idempotent_hint);
        let (name, mut schema) = (tool.name.into_owned(), Arc::unwrap_or_clone(tool.input_schema));
        let title = tool.title.or_else(|| tool.annotations.as_ref()?.title.clone());
        let mut said = vec![json!(name), json!(tool.description), json!(read_only), json!(idempotent), json!(schema)];
        said.extend(title.as_ref().map(|title| json!(title)));
        let digest = digest(&said);
        make_members_visible(&mut schema);
        let description = tool.description.map(|text| visible(&text).into_owned());
        let title = title.map(|text| visible(&text).into_owned());
        Self { name, title, description, parameters: schema, read_only, idempotent, digest }
    }
}

impl From<protocol::model::Resource> for Resource {
    fn from(resource: protocol::model::Resource) -> Self {
        let visible = |text: String| visible(&text).into_owned();
        Self {
            uri: visible(resource.uri),
            name: visible(resource.name),
            description: resource.description.map(visible),
            media_type: resource.mime_type.map(visible),
        }
    }
}

impl From<CallToolResult> for Answer {
    fn from(result: CallToolResult) -> Self {
        Self {
            blocks: result.content.into_iter().map(Block::from).collect(),
            structured: result.structured_content,
            is_error: result.is_error.unwrap_or_default(),
        }
    }
}

impl From<ContentBlock> for Block {
    fn from(block: ContentBlock) -> Self {
        match block {
            ContentBlock::Text(text) => Self::Text(text.text),
            ContentBlock::Image(image) => Self::File(file(image.mime_type, &image.data)),
            ContentBlock::Audio(audio) => Self::File(file(audio.mime_type, &audio.data)),
            ContentBlock::Resource(resource) => resource.resource.into(),
            ContentBlock::ResourceLink(link) => Self::Text(format!("[resource {}: {}]", link.uri, link.name)),
            _ => Self::Text("[a kind of content that is not supported]".to_owned()),
        }
    }
}

impl From<ResourceContents> for Block {
    fn from(contents: ResourceContents) -> Self {
        match contents {
            ResourceContents::TextResourceContents { uri, text, .. } => Self::Text(format!("{uri}:\n{text}")),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let media_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                Self::File(file(media_type, &blob).named(uri))
            }
            _ => Self::Text("[a kind of resource that is not supported]".to_owned()),
        }
    }
}

/// Returns a file with this content, which is in base64. The reply of the tool checks it.
fn file(media_type: String, base64: &str) -> FilePart {
    let url = format!("data:{media_type};base64,{base64}");
    FilePart::new(media_type, url)
}
