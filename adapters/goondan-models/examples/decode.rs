//! Runs recorded streams of a provider through its interface, and prints the answers and what the next request would
//! carry of them, as JSON.
//!
//! ```sh
//! cargo run -p goondan-models --example decode -- --wire anthropic FILE…
//! ```
//!
//! A file has one event per line, as JSON; lines may also be those of the stream itself, with `data: ` before the JSON.
//! Nothing is sent anywhere.
#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::sync::{Arc, Mutex};

use goondan_core::{
    BoxFuture, Content, Conversation, Deltas, Error, Message, Model, ModelRequest, Result, Role, Source, ToolCatalog,
    ToolOutput, ToolResultPart,
};
use goondan_models::http::{Failure, Incoming, Outgoing, Transport};
use goondan_models::wire::{Anthropic, Chat, Dialect, Gemini, Responses, Wire};
use goondan_models::{ModelConfig, Provider};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some("--wire"), Some(wire)) = (args.next().as_deref(), args.next()) else {
        return Err(Error::msg("usage: decode --wire WIRE FILE…"));
    };
    for path in args {
        let stream = stream(&std::fs::read_to_string(&path)?);
        let decoded = match &*wire {
            Anthropic::API => decode(Anthropic, stream).await?,
            Responses::API => decode(Responses, stream).await?,
            Chat::API => decode(Chat::new(Dialect::OPENROUTER), stream).await?,
            Gemini::API => decode(Gemini, stream).await?,
            other => return Err(Error::msg(format!("no wire is called `{other}`"))),
        };
        println!("{}", serde_json::to_string_pretty(&json!({ "file": path, "decoded": decoded }))?);
    }
    Ok(())
}

/// Returns the server-sent events of a file.
fn stream(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("event:"));
    lines.map(|line| format!("data: {}\n\n", line.strip_prefix("data:").unwrap_or(line).trim())).collect()
}

/// Returns the answer of a stream, and the body of the request that follows it.
async fn decode<W: Wire>(wire: W, stream: String) -> Result<Value> {
    let recorded = Recorded { stream, bodies: Arc::default() };
    let provider = Provider { name: W::API, base_url: Some("http://127.0.0.1"), needs_key: false };
    let mut config = ModelConfig::new("recorded");
    config.retries.max = 1;
    let model = config.model(&provider, wire)?.with_transport(recorded.clone());
    let question = Message::user("…");
    let answer = match ask(&model, [question.clone()]).await {
        Ok(answer) => answer,
        Err(error) => return Ok(json!({ "error": error.to_string() })),
    };
    let results = answer.calls().map(|call| {
        let output = ToolOutput::Text("…".to_owned());
        let part = ToolResultPart::new(call.tool_call_id.clone(), &*call.tool_name, output);
        Message::new(Role::Tool, vec![goondan_core::Part::ToolResult(part)], Source::System)
    });
    let mut messages: Vec<_> = results.collect();
    if messages.is_empty() {
        messages.push(question.clone().with_id("second"));
    }
    let step_id = "turn:0".to_owned();
    let said = Message::new(Role::Assistant, Content::Parts(answer.content.clone()), Source::Assistant { step_id });
    // The stream is played once more; only the request matters.
    ask(&model, [question, said].into_iter().chain(messages)).await?;
    let bodies = recorded.bodies.lock().map_err(|_| Error::msg("poisoned"))?;
    Ok(json!({ "answer": answer, "next": bodies.last() }))
}

async fn ask(model: &dyn Model, messages: impl IntoIterator<Item = Message>) -> Result<goondan_core::ModelResponse> {
    let (conversation, _) = Conversation::from_base(messages.into_iter().map(Arc::new));
    model.generate(ModelRequest::new(None, &conversation, &ToolCatalog::default()), Deltas::none()).await
}

/// Plays a stream, and keeps the bodies of the requests.
#[derive(Clone)]
struct Recorded {
    stream: String,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Transport for Recorded {
    fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<Incoming, Failure>> {
        if let (Ok(mut bodies), Ok(body)) = (self.bodies.lock(), serde_json::from_slice(&request.body)) {
            bodies.push(body);
        }
        Box::pin(std::future::ready(Ok(Incoming::new(StatusCode::OK, HeaderMap::new(), self.stream.clone()))))
    }
}
