//! Clients of AI SDK UI and of AG-UI with agents that are served.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::routing::post;
use goondan::decision::Question;
use goondan::event::AgentDelegate;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::prelude::*;
use goondan::store::{MemoryQueue, MemoryStore};
use goondan::{Agent, BoxFuture, json};
use goondan_covers::covers;
use goondan_serve::{Service, listen};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::installed;

/// A model that does what the newest message says.
struct Obedient {
    /// What its slow answers wait for.
    go_on: Arc<Semaphore>,
    asked: AtomicUsize,
}

impl Model for Obedient {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let texts: Vec<_> = request.messages().map(|message| message.content.text().into_owned()).collect();
        let call =
            |tool: &str| json!({ "toolCalls": [{ "id": format!("call-{}", texts.len()), "name": tool, "args": {} }] });
        let answer = match texts.last().map(String::as_str) {
            Some("look") => call("shop__look"),
            Some("refund") => call("shop__refund"),
            Some("later") => call("shop__later"),
            Some("found") => json!({ "text": "I have looked." }),
            Some("count") => json!({ "text": format!("{asked} answers before.") }),
            Some("file") => json!({ "text": "A picture." }),
            Some("slow") => json!({ "text": "It rains in Lisbon." }),
            Some("fail") => return Box::pin(async { Err(Error::new("E_MODEL", "overloaded")) }),
            Some("restart") => {
                deltas.send(ModelDelta::Text { part: 0, text: "It sn" });
                deltas.send(ModelDelta::Restart { reason: "the stream was cut", wait: None });
                deltas.send(ModelDelta::Text { part: 0, text: "It rains." });
                json!({ "text": "It rains." })
            }
            Some("hello") => {
                json!({ "content": [{ "type": "reasoning", "text": "A greeting." }, { "type": "text", "text": "Hello, you." }] })
            }
            _ => json!({ "text": "It is done." }),
        };
        let is_slow = answer["text"] == "It rains in Lisbon.";
        Box::pin(async move {
            if is_slow {
                deltas.send(ModelDelta::Text { part: 0, text: "It rains " });
                self.go_on.acquire().await.map_err(|error| Error::msg(error.to_string()))?.forget();
                deltas.send(ModelDelta::Text { part: 0, text: "in Lisbon." });
            }
            Ok(serde_json::from_value(answer)?)
        })
    }
}

struct Shop(ExtensionApi);

#[goondan::extension(name = "shop")]
impl Shop {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self(api)
    }

    /// Looks something up.
    #[tool(effect = read)]
    async fn look(&self) -> Result<String> {
        Ok("found".into())
    }

    /// Pays money back.
    #[tool(effect = once)]
    async fn refund(&self) -> Result<String> {
        Ok("paid back".into())
    }

    /// Starts another turn of the conversation.
    #[tool(effect = once)]
    async fn later(&self) -> Result<String> {
        self.0.events().delegate(AgentDelegate::new("assistant".parse()?, "slow"));
        Ok("planned".into())
    }

    #[middleware(toolCall)]
    async fn ask(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if ctx.tool_name() == "shop__refund" && ctx.decision::<bool>()?.is_none() {
            ctx.ask(Question::new("Pay the money back?"));
        }
        next.run(ctx).await
    }
}

/// Runs a client of node with an agent that is served.
async fn talk(script: &str) {
    let go_on = Arc::new(Semaphore::new(0));
    let model = Obedient { go_on: Arc::clone(&go_on), asked: AtomicUsize::new(0) };
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::builder("assistant").model(model).extension::<Shop>(json!({})).store(Arc::clone(&store));
    let service = Service::new(agent.build().unwrap()).store(store).page(true);
    let service = service.queue(Arc::new(MemoryQueue::new()));
    let worker = service.clone();
    let work = tokio::spawn(async move { worker.work().await });
    let router = service.router().route(
        "/go-on",
        post(async move || {
            go_on.add_permits(1);
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(listen(listener, router, pending()));
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(script);
    let client = tokio::process::Command::new(installed(".bin/node")).arg(script).arg(url).output().await.unwrap();
    server.abort();
    work.abort();
    let seen = String::from_utf8_lossy(&client.stdout).into_owned() + &String::from_utf8_lossy(&client.stderr);
    assert!(client.status.success(), "{seen}");
    println!("{seen}");
}

#[tokio::test]
#[covers("SERVE-01", "SERVE-02", "ASK-01")]
async fn a_chat_of_ai_sdk_talks_to_an_agent_unmodified() {
    talk("ai_sdk.mjs").await;
}

#[tokio::test]
#[covers("SERVE-01", "ASK-01")]
async fn a_client_of_ag_ui_talks_to_an_agent_unmodified() {
    talk("ag_ui.mjs").await;
}

#[tokio::test]
#[covers("SERVE-01")]
async fn the_description_of_the_routes_is_openapi() {
    talk("openapi.mjs").await;
}

#[tokio::test]
#[covers("SERVE-01", "SERVE-02", "ASK-01")]
async fn pages_in_a_browser_are_reloaded_at_any_time() {
    talk("browser.mjs").await;
}
