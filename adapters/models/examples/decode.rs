//! Runs recorded streams of a provider through its interface, and prints the answers and the parts that the next
//! request would carry of them, as JSON.
//!
//! ```sh
//! cargo run -p goondan-models --example decode -- --wire anthropic FILE…
//! ```
//!
//! A file has one event per line, as JSON; lines may also be those of the stream itself, with `data: ` before the JSON.
//! An event stream of AWS is read as it came over the connection. Nothing is sent anywhere.
//!
//! `--bytes` instead reads each stream in single bytes, and cut in two: at each byte, or at 1024 of them if the stream
//! is longer than 16 kB. The program fails if one of these gives another answer than the whole stream.
#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use goondan_core::{
    BoxFuture, Conversation, Error, Message, Part, Result, Role, Source, ToolCatalog, ToolItem, ToolOutput,
    ToolResultPart,
};
use goondan_models::http::{Failure, Incoming, Outgoing, Transport, unframed};
use goondan_models::wire::{Anthropic, Chat, Converse, Dialect, Gemini, Responses, Wire};
use goondan_models::{ModelConfig, Provider};
use goondan_runtime::{DeltaSink, Model, ModelRequest, ModelResponse};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

/// The longest stream that is cut at each byte, and the number of cuts of longer ones.
const SHORT: usize = 16 << 10;
const CUTS: usize = 1024;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).peekable();
    let (Some("--wire"), Some(wire)) = (args.next().as_deref(), args.next()) else {
        return Err(Error::msg("usage: decode --wire WIRE [--bytes] FILE…"));
    };
    let bytes = args.next_if(|arg| arg == "--bytes").is_some();
    for path in args {
        let file = std::fs::read(&path)?;
        let stream = if is_framed([&file[..]]) { file.into() } else { stream(&String::from_utf8_lossy(&file)) };
        let report = match &*wire {
            Anthropic::API => report(|| Anthropic, stream, bytes).await?,
            Responses::API => report(|| Responses, stream, bytes).await?,
            Chat::API => report(|| Chat::new(Dialect::OPENROUTER), stream, bytes).await?,
            Converse::API => report(|| Converse, stream, bytes).await?,
            Gemini::API => report(|| Gemini, stream, bytes).await?,
            other => return Err(Error::msg(format!("no wire is called `{other}`"))),
        };
        println!("{}", serde_json::to_string_pretty(&json!({ "file": path, "decoded": report }))?);
    }
    Ok(())
}

/// Returns the server-sent events of a file.
fn stream(text: &str) -> Bytes {
    // Comments and the other fields of an event.
    let is_other = |line: &str| [":", "event:", "id:", "retry:"].iter().any(|start| line.starts_with(start));
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_other(line));
    let event = |line: &str| format!("data: {}\n\n", line.strip_prefix("data:").unwrap_or(line).trim());
    lines.map(event).collect::<String>().into()
}

/// Whether a stream is one of AWS: it begins with the length of a frame, which is below 16 MB.
fn is_framed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> bool {
    pieces.into_iter().find_map(|piece| piece.first()) == Some(&0)
}

async fn report<W: Wire>(wire: impl Fn() -> W, stream: Bytes, bytes: bool) -> Result<Value> {
    match bytes {
        false => decode(wire(), stream).await,
        true => cut(wire, &stream).await,
    }
}

/// Returns the answer of a stream, and the body of the request that follows it.
async fn decode<W: Wire>(wire: W, stream: Bytes) -> Result<Value> {
    let recorded = Recorded::new([stream]);
    let model = recorded.model(wire)?;
    let question = Message::user("…");
    let answer = match ask(&model, [question.clone()]).await {
        Ok(answer) => answer,
        Err(error) => return Ok(json!({ "error": error.to_string() })),
    };
    let results = answer.calls().map(|call| {
        let output = ToolOutput::Text("…".to_owned());
        let part = ToolResultPart::new(call.tool_call_id.clone(), &*call.tool_name, output);
        Message::new(Role::Tool, vec![part.into()], Source::System)
    });
    let mut messages: Vec<_> = results.collect();
    if messages.is_empty() {
        messages.push(question.clone().with_id("second"));
    }
    let step_id = "turn:0".to_owned();
    let said = Message::new(Role::Assistant, answer.content.clone(), Source::Assistant { step_id });
    // The stream is played once more; only the request matters.
    let tools = answer.calls().filter_map(|call| ToolItem::new(&call.tool_name).ok()).collect();
    ask_with(&model, [question, said].into_iter().chain(messages), &tools).await?;
    let bodies = recorded.bodies.lock().map_err(|_| Error::msg("poisoned"))?;
    Ok(json!({ "answer": answer, "next": bodies.last() }))
}

/// Checks that a stream gives the same answer however its bytes arrive. Returns the number of ways that were tried.
async fn cut<W: Wire>(wire: impl Fn() -> W, stream: &Bytes) -> Result<Value> {
    let whole = answer_of(wire(), stream, [stream.clone()]).await?;
    let step = if stream.len() <= SHORT { 1 } else { stream.len().div_ceil(CUTS) };
    let single_bytes = (0..stream.len()).map(|at| stream.slice(at..=at)).collect();
    let halves = (0..stream.len()).step_by(step).map(|at| vec![stream.slice(..at), stream.slice(at..)]);
    let mut ways = 0;
    for pieces in std::iter::once(single_bytes).chain(halves) {
        let (count, length) = (pieces.len(), pieces[0].len());
        if answer_of(wire(), stream, pieces).await? != whole {
            return Err(Error::msg(format!("{count} pieces, the first of {length} bytes, are another answer")));
        }
        ways += 1;
    }
    Ok(json!({ "bytes": stream.len(), "ways": ways }))
}

/// Returns the answer of a stream that arrives in `pieces`. Ids that are not the provider's are random, and left out.
async fn answer_of<W: Wire>(wire: W, stream: &Bytes, pieces: impl IntoIterator<Item = Bytes>) -> Result<Value> {
    let mut answer = match ask(&Recorded::new(pieces).model(wire)?, [Message::user("…")]).await {
        Ok(answer) => answer,
        Err(error) => return Ok(json!({ "error": error.to_string() })),
    };
    let stream = String::from_utf8_lossy(stream);
    for part in &mut answer.content {
        if let Part::ToolCall(call) = part
            && !stream.contains(call.tool_call_id.as_str())
        {
            call.tool_call_id = "random".into();
        }
    }
    Ok(serde_json::to_value(answer)?)
}

async fn ask(model: &dyn Model, messages: impl IntoIterator<Item = Message>) -> Result<ModelResponse> {
    ask_with(model, messages, &ToolCatalog::default()).await
}

async fn ask_with(
    model: &dyn Model,
    messages: impl IntoIterator<Item = Message>,
    tools: &ToolCatalog,
) -> Result<ModelResponse> {
    let (conversation, _) = Conversation::from_base(messages.into_iter().map(Arc::new));
    model.generate(ModelRequest::new(None, &conversation, tools), DeltaSink::none()).await
}

/// Plays a stream in pieces, and keeps the bodies of the requests.
#[derive(Clone)]
struct Recorded {
    pieces: VecDeque<Bytes>,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Recorded {
    fn new(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        Self { pieces: pieces.into_iter().collect(), bodies: Arc::default() }
    }

    fn model<W: Wire>(&self, wire: W) -> Result<impl Model + use<W>> {
        let provider = Provider::new(W::API, Some("http://127.0.0.1"), false);
        let mut config = ModelConfig::new("recorded");
        config.retries.max = 1;
        Ok(config.model(&provider, wire)?.with_transport(self.clone()))
    }
}

impl Transport for Recorded {
    fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<Incoming, Failure>> {
        if let (Ok(mut bodies), Ok(body)) = (self.bodies.lock(), serde_json::from_slice(&request.body)) {
            bodies.push(body);
        }
        let (status, mut headers) = (StatusCode::OK, HeaderMap::new());
        if is_framed(self.pieces.iter().map(|piece| &**piece)) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/vnd.amazon.eventstream"));
        }
        let response = Incoming::streamed(status, headers, Box::pin(Pieces(self.pieces.clone())));
        Box::pin(std::future::ready(Ok(unframed(response))))
    }
}

struct Pieces(VecDeque<Bytes>);

impl Stream for Pieces {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}
