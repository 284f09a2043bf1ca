//! Cassettes: what is recorded with a provider is played without one.

mod answers;
mod bundles;
mod file;
mod matching;
mod secrets;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use goondan_core::{BoxFuture, ErrorCode, Part, Result};
use goondan_covers::covers;
use goondan_models::cassette::CassetteConfig;
use goondan_models::http::{Failure, FailureKind, Incoming, Outgoing, Transport};
use goondan_models::wire::{Anthropic, Chat, Converse, Dialect, Gemini, Responses, Wire};
use goondan_models::{Cassette, HttpModel, Provider, providers};
use goondan_runtime::{CassetteMode, DeltaSink, ModelDelta};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::support::{Asked, Played, Recording, Reply, Sent, Server, Step, ask, config, told};

/// A transport that fails on use.
struct NoNetwork;

impl Transport for NoNetwork {
    fn send(&self, _: Outgoing) -> BoxFuture<'_, Result<Incoming, Failure>> {
        Box::pin(async { Err(Failure::new(FailureKind::Request, "a cassette opened a connection")) })
    }
}

/// A file for a cassette, in a directory that does not exist yet.
struct Tape {
    directory: TempDir,
}

impl Tape {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("cassettes/main.jsonl")
    }

    /// A model that records what `transport` sends.
    fn recording(&self, transport: impl Transport + 'static) -> HttpModel<Anthropic> {
        let mut config = config("http://127.0.0.1:9");
        config.retries.max = 3;
        let model = config.model(&providers::ANTHROPIC, Anthropic).unwrap();
        model.with_transport(transport).with_cassette(Cassette::record(self.path()).unwrap())
    }

    /// A model that plays, and the cassette.
    fn playing(&self) -> (HttpModel<Anthropic>, Cassette) {
        let cassette = Cassette::replay(self.path()).unwrap();
        (player(&cassette), cassette)
    }

    /// The lines of the file.
    fn lines(&self) -> Vec<Value> {
        lines(&self.path())
    }
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A model without a key that plays a cassette.
fn player(cassette: &Cassette) -> HttpModel<Anthropic> {
    let mut config = config("https://api.anthropic.example");
    (config.api_key, config.retries.max) = (None, 3);
    let model = config.model(&providers::ANTHROPIC, Anthropic).unwrap();
    model.with_transport(NoNetwork).with_cassette(cassette.clone())
}

/// A stream of Anthropic with this text.
fn says(text: &str) -> String {
    let delta = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } });
    [
        json!({ "type": "message_start", "message": { "id": "msg", "model": "m-1", "usage": { "input_tokens": 3 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        delta,
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 2 } }),
        json!({ "type": "message_stop" }),
    ]
    .iter()
    .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
    .collect()
}

fn user(text: &str) -> Asked {
    Asked::messages(json!([{ "role": "user", "content": text }]))
}

/// Records each stream of a folder with a server, and plays it.
async fn plays_all<W: Wire>(folder: &str, provider: Provider, wire: impl Fn() -> W) {
    for recording in Recording::all(folder) {
        let tape = Tape::new();
        let server = Server::start([Reply::events(&recording.stream()).in_pieces(97)]).await;
        let model = config(server.url()).model(&provider, wire()).unwrap();
        let model = model.with_cassette(Cassette::record(tape.path()).unwrap());
        let recorded = told(&model, &Asked::default()).await;

        let cassette = Cassette::replay(tape.path()).unwrap();
        let mut config = config(server.url());
        config.api_key = None;
        let model = config.model(&provider, wire()).unwrap();
        let model = model.with_transport(NoNetwork).with_cassette(cassette.clone());
        let played = told(&model, &Asked::default()).await;
        assert_eq!(format!("{played:?}"), format!("{recorded:?}"), "{folder}/{}", recording.name);
        assert_eq!(server.requests().len(), 1, "{folder}/{}", recording.name);
        cassette.finish().unwrap();
    }
}

#[tokio::test]
#[covers("MODEL-04")]
async fn what_was_recorded_over_each_interface_is_played_piece_by_piece_without_key_and_network() {
    plays_all("anthropic", providers::ANTHROPIC, || Anthropic).await;
    plays_all("converse", providers::BEDROCK, || Converse).await;
    plays_all("responses", providers::OPENAI, || Responses).await;
    plays_all("gemini", providers::GEMINI, || Gemini).await;
    let chat = providers::chat(&Dialect::OPENROUTER);
    plays_all("chat", chat, || Chat::new(Dialect::OPENROUTER)).await;
}

#[tokio::test(start_paused = true)]
async fn failures_cuts_and_silences_are_played_too_and_nothing_waits() {
    let tape = Tape::new();
    let stream = says("It rains.");
    let half = stream.find("event: message_delta").unwrap();
    let half = |last| [Step::Bytes(stream[..half].to_owned().into()), last];
    let busy = json!({ "error": { "type": "rate_limit_error", "message": "not now" } });
    for (name, attempts) in [
        ("failure", vec![Played::json(429, &busy).header("retry-after", "7"), Played::json(529, &json!({}))]),
        ("cut", vec![Played::new(200, half(Step::Break)), Played::events(&stream[..90])]),
        ("silence", vec![Played::new(200, half(Step::Wait(Duration::from_secs(600))))]),
    ] {
        let attempts: Vec<_> = attempts.into_iter().chain([Played::events(&stream)]).collect();
        let begun = Instant::now();
        let count = attempts.len();
        let recorded = told(&tape.recording(Sent::to(attempts)), &Asked::default()).await;
        assert!(recorded.0.is_ok() && begun.elapsed() > Duration::from_millis(500), "{name}: {recorded:?}");
        assert_eq!(tape.lines().len(), 1 + count, "{name}");

        let (model, cassette) = tape.playing();
        let begun = Instant::now();
        let played = told(&model, &Asked::default()).await;
        assert_eq!(played.0.unwrap().content, recorded.0.unwrap().content, "{name}");
        // The words for a broken connection may differ.
        assert_eq!(played.1.len(), recorded.1.len(), "{name}: {played:?}", played = played.1);
        assert_eq!(played.1.last(), recorded.1.last(), "{name}");
        assert_eq!(begun.elapsed(), Duration::ZERO, "{name}");
        cassette.finish().unwrap();

        let waits = Mutex::new(Vec::new());
        let tell = |delta: ModelDelta<'_>| {
            if let ModelDelta::Restart { wait: Some(wait), .. } = delta {
                waits.lock().unwrap().push(wait);
            }
        };
        Asked::default().of(&tape.playing().0, DeltaSink::to(&tell)).await.unwrap();
        assert_eq!(waits.into_inner().unwrap(), vec![Duration::ZERO; count - 1], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cassette_can_be_played_as_slowly_as_it_was_recorded() {
    let tape = Tape::new();
    let stream = says("It rains.");
    let (head, tail) = stream.split_at(stream.find("event: message_delta").unwrap());
    let played =
        Played::events(head).then(Step::Wait(Duration::from_secs(3))).then(Step::Bytes(tail.to_owned().into()));
    ask(&tape.recording(Sent::to([played]))).await.unwrap();
    let settings = serde_json::from_value(json!({ "pace": "real" })).unwrap();
    let cassette = Cassette::open(tape.path(), CassetteMode::Replay, &settings).unwrap();
    let begun = Instant::now();
    ask(&player(&cassette)).await.unwrap();
    assert!((3000..3050).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

/// A turn that was interrupted asks again, as it would ask its provider.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_dropped_before_its_end_is_played_again() {
    let tape = Tape::new();
    let stream = says("It rains.");
    let (head, tail) = stream.split_at(stream.find("event: message_delta").unwrap());
    let slow = Played::events(head).then(Step::Wait(Duration::from_secs(3))).then(Step::Bytes(tail.to_owned().into()));
    ask(&tape.recording(Sent::to([slow]))).await.unwrap();
    let settings = serde_json::from_value(json!({ "pace": "real", "match": "order" })).unwrap();
    let cassette = Cassette::open(tape.path(), CassetteMode::Replay, &settings).unwrap();
    let model = player(&cassette);
    for _ in 0..2 {
        assert!(tokio::time::timeout(Duration::from_secs(1), ask(&model)).await.is_err());
        assert!(cassette.finish().is_err());
    }
    assert_eq!(ask(&model).await.unwrap().to_text(), "It rains.");
    cassette.finish().unwrap();
}

#[tokio::test(start_paused = true)]
async fn ids_that_the_provider_leaves_out_are_the_same_when_played() {
    let call = json!({ "type": "tool_use", "id": "", "name": "weather__today", "input": {} });
    let start = json!({ "type": "content_block_start", "index": 0, "content_block": call });
    let stream = says("").replace(
        &json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } })
            .to_string(),
        &start.to_string(),
    );
    let tape = Tape::new();
    let sent = Sent::to([Played::events(&stream)]);
    let recorded = ask(&tape.recording(sent.clone())).await.unwrap();
    let played = ask(&tape.playing().0).await.unwrap();
    assert_eq!(recorded.content, played.content);
    let other = ask(&tape.recording(sent)).await.unwrap();
    assert_eq!(other.content, played.content);
    assert!(matches!(&played.content[0], Part::ToolCall(call) if !call.tool_call_id.as_str().is_empty()));
}

#[tokio::test]
async fn without_a_cassette_a_model_without_a_key_fails_as_ever() {
    let tape = Tape::new();
    let settings = CassetteConfig::default();
    let cassette = Cassette::open(tape.path(), CassetteMode::Off, &settings).unwrap();
    let error = ask(&player(&cassette)).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_AUTH, "{error}");
}
