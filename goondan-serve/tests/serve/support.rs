//! A service that listens on a free port, and its clients.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::serve::ListenerExt;
use goondan::agent::AgentBuilder;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::prelude::*;
use goondan::store::{MemoryStore, Store};
use goondan::{Agent, BoxFuture, Value, json};
use goondan_serve::Service;
use reqwest::{Client, Response};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::described;

/// A service of one agent, `assistant`.
pub(crate) struct Served {
    pub(crate) service: Service,
    pub(crate) url: String,
    pub(crate) client: Client,
    server: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Served {
    pub(crate) async fn new(agent: AgentBuilder) -> Self {
        Self::with(agent, Arc::new(MemoryStore::new()), |service| service).await
    }

    pub(crate) async fn with(
        agent: AgentBuilder,
        store: Arc<dyn Store>,
        configure: impl FnOnce(Service) -> Service,
    ) -> Self {
        let agent = agent.store(Arc::clone(&store)).build().unwrap();
        Self::of(configure(Service::new(agent).store(store))).await
    }

    pub(crate) async fn of(service: Service) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let listener = listener.tap_io(|connection| connection.set_nodelay(true).unwrap());
        let router = service.router();
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        // Where the client of the workspace speaks TLS, it needs one that is chosen. It is chosen once.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { service, url, client: Client::new(), server }
    }

    /// Returns the address of something in the conversation `key`.
    pub(crate) fn at(&self, key: &str, rest: &str) -> String {
        format!("{}/v1/agents/assistant/instances/{key}{rest}", self.url)
    }

    pub(crate) async fn turn(&self, key: &str, body: &Value, idempotency: Option<&str>) -> Response {
        let request = self.client.post(self.at(key, "/turns")).body(body.to_string());
        let request = idempotency.into_iter().fold(request, |request, id| request.header("idempotency-key", id));
        request.send().await.unwrap()
    }

    /// Waits until no turn runs.
    pub(crate) async fn until_ended(&self) {
        while self.service.running() > 0 {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn get(&self, url: &str) -> (u16, Value) {
        json_of(self.client.get(url).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, url: &str, body: &Value) -> (u16, Value) {
        json_of(self.client.post(url).body(body.to_string()).send().await.unwrap()).await
    }
}

/// Reads an answer, which is one of those that the description has.
pub(crate) async fn json_of(response: Response) -> (u16, Value) {
    let (url, status) = (response.url().path().to_owned(), response.status().as_u16());
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    let text = response.text().await.unwrap();
    let body: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    described::check(&url, status, kind.as_deref().unwrap_or_default(), &body);
    (status, body)
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Sent {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// Reads events of a stream, until there are `most`, or to its end.
pub(crate) async fn events(response: &mut Response, most: usize) -> Vec<Sent> {
    let (mut text, mut events) = (String::new(), Vec::new());
    while events.len() < most {
        let Some(chunk) = response.chunk().await.unwrap() else { break };
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        while let Some((frame, rest)) = text.split_once("\n\n") {
            let field = |name: &str| {
                let line = frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                line.unwrap_or_default().to_owned()
            };
            if !frame.starts_with(':') {
                events.push(Sent { id: field("id"), event: field("event"), data: field("data") });
            }
            text = rest.to_owned();
        }
    }
    events
}

/// Returns the text that the pieces of a stream are.
pub(crate) fn text_of(events: &[Sent]) -> String {
    let pieces = events.iter().map(Sent::json).filter(|update| update["type"] == "text");
    pieces.map(|update| update["text"].as_str().unwrap().to_owned()).collect()
}

/// A model whose answer has a piece for each permit.
#[derive(Clone)]
pub(crate) struct Paced {
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) asked: Arc<std::sync::atomic::AtomicUsize>,
}

impl Paced {
    pub(crate) fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(0)), asked: Arc::default() }
    }

    pub(crate) fn let_through(&self, pieces: usize) {
        self.permits.add_permits(pieces);
    }
}

pub(crate) const PIECES: [&str; 4] = ["It ", "rains ", "in ", "Lisbon."];

impl Model for Paced {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, deltas: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            for piece in PIECES {
                self.permits.acquire().await.unwrap().forget();
                deltas.send(ModelDelta::Text { part: 0, text: piece });
            }
            Ok(ModelResponse::text(PIECES.concat()))
        })
    }
}

/// A model that keeps its thread until it may go on, and fails if that takes long.
pub(crate) struct Keeping(Mutex<Receiver<()>>);

impl Keeping {
    pub(crate) fn new() -> (Sender<()>, Self) {
        let (go_on, told) = channel();
        (go_on, Self(Mutex::new(told)))
    }
}

impl Model for Keeping {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let told = self.0.lock().unwrap().recv_timeout(Duration::from_secs(30));
        Box::pin(async move { Ok(ModelResponse::text(if told.is_ok() { "It went on." } else { "It waited." })) })
    }
}

/// A tool that asks before it runs.
pub(crate) struct Shop(ExtensionApi);

/// The arguments of a search.
#[derive(Deserialize, JsonSchema)]
struct Wanted {
    name: String,
}

#[goondan::extension(name = "shop")]
impl Shop {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self(api)
    }

    /// Pays money back.
    #[tool(effect = once)]
    async fn refund(&self) -> Result<String> {
        Ok("paid back".into())
    }

    /// Looks something up.
    #[tool(effect = read)]
    async fn look(&self) -> Result<String> {
        Ok("found".into())
    }

    /// Finds something by its name.
    #[tool(effect = read)]
    async fn find(&self, Wanted { name }: Wanted) -> Result<String> {
        Ok(format!("{name} is here"))
    }

    /// Does not work.
    #[tool(effect = read)]
    async fn fail(&self) -> Result<String> {
        Err(Error::msg("the shop is closed"))
    }

    /// Takes long.
    #[tool(effect = once)]
    async fn work(&self, ctx: &ToolContext<'_>) -> Result<String> {
        ctx.progress(1.0, Some(2.0), "half");
        self.0.events().show(goondan::event::Shown::note("at work"));
        Ok("worked".into())
    }

    #[middleware(toolCall)]
    async fn ask(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if ctx.tool_name() == "shop__refund" && ctx.decision::<bool>()?.is_none() {
            ctx.ask(goondan::decision::Question::new("Pay the money back?"));
        }
        next.run(ctx).await
    }
}

pub(crate) fn paced() -> (AgentBuilder, Paced) {
    let model = Paced::new();
    (Agent::builder("assistant").model(model.clone()), model)
}

pub(crate) fn hello() -> Value {
    json!({ "input": "hello" })
}
