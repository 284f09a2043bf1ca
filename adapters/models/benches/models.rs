//! What a piece of a streamed answer costs, from its bytes to a reader of the stream, and what a request costs.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints")]

#[path = "../tests/pieces/mod.rs"]
mod pieces;

use std::hint::black_box;
use std::time::{Duration, Instant};

use goondan::Agent;
use goondan::agent::TurnUpdate;
use goondan_core::{Conversation, Message, ModelOptions, Source, ToolCatalog};
use goondan_models::wire::{Anthropic, Chat, Converse, Dialect, Encoding, Gemini, Responses, Wire};
use goondan_models::{Provider, providers};
use goondan_runtime::ModelRequest;

use pieces::{ANTHROPIC, CHAT, CONVERSE, GEMINI, PIECE, RESPONSES, Stream};

const ROUNDS: usize = 15;

fn main() {
    let chat = || Chat::new(Dialect::OPENAI_COMPATIBLE);
    println!("a piece of an answer, from bytes that have arrived to a reader of the stream");
    piece(&providers::ANTHROPIC, || Anthropic, &ANTHROPIC);
    piece(&providers::OPENAI, || Responses, &RESPONSES);
    piece(&providers::chat(&Dialect::OPENAI_COMPATIBLE), chat, &CHAT);
    piece(&providers::BEDROCK, || Converse, &CONVERSE);
    piece(&providers::GEMINI, || Gemini, &GEMINI);
    for count in [1_000, 10_000] {
        println!("a message of 500 characters in a request of {count}, and as JSON by itself");
        message(Anthropic, count);
        message(Responses, count);
        message(chat(), count);
        message(Converse, count);
        message(Gemini, count);
    }
}

/// Returns the shortest time of several rounds.
fn shortest(mut round: impl FnMut()) -> Duration {
    let time = |_| {
        let begun = Instant::now();
        round();
        begun.elapsed()
    };
    (0..ROUNDS).map(time).min().unwrap_or_default()
}

fn piece<W: Wire>(provider: &Provider, wire: impl Fn() -> W, stream: &Stream<'_>) {
    const PIECES: usize = 20_000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let time = shortest(|| {
        let agent = Agent::builder("bench").model(stream.model(provider, wire(), PIECES)).build().unwrap();
        let read = async {
            let instance = agent.instance("bench").await.unwrap();
            let mut turn = instance.run_stream("hi");
            let mut texts = 0;
            while let Some(update) = turn.next().await {
                texts += usize::from(matches!(update, TurnUpdate::Text { text, .. } if text == PIECE));
            }
            assert!(texts >= PIECES);
        };
        runtime.block_on(read);
    });
    println!("  {}: {:.0} ns", W::API, nanoseconds(time, PIECES));
}

fn message<W: Wire>(wire: W, count: usize) {
    let message = |index: usize| {
        let source = || Source::Assistant { step_id: "turn:0".to_owned() };
        match index % 2 {
            0 => Message::user("a question ".repeat(45)),
            _ => Message::new(goondan_core::Role::Assistant, "an answer, ".repeat(45), source()),
        }
    };
    let (conversation, _) = Conversation::from_base((0..count).map(|index| message(index).into()));
    let (tools, options) = (ToolCatalog::default(), ModelOptions::default());
    let request = ModelRequest::new(None, &conversation, &tools);
    let encoded = shortest(|| {
        black_box(wire.encode(&Encoding::new(W::API, "m", request, &options)).unwrap());
    });
    let plain = shortest(|| {
        black_box(serde_json::to_vec(&request.messages().collect::<Vec<_>>()).unwrap());
    });
    let (encoded, plain) = (nanoseconds(encoded, count), nanoseconds(plain, count));
    println!("  {}: {encoded:.0} ns, {plain:.0} ns: {:.2}", W::API, encoded / plain);
}

fn nanoseconds(time: Duration, count: usize) -> f64 {
    time.as_nanos() as f64 / count as f64
}
