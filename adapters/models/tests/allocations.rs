//! The allocations of a piece of a streamed answer, which can be counted instead of timed, so that they hold on every
//! machine.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod pieces;

use allocation_counter::measure;
use goondan_core::{Conversation, Message, Part, ToolCatalog};
use goondan_models::wire::{Anthropic, Chat, Converse, Dialect, Gemini, Responses, Wire};
use goondan_models::{Provider, providers};
use goondan_runtime::{DeltaSink, Model, ModelRequest};

use pieces::{ANTHROPIC, CHAT, CONVERSE, GEMINI, PIECE, RESPONSES, Stream};

/// Returns how often a request allocates whose answer has this number of pieces.
fn allocations<W: Wire>(provider: &Provider, wire: W, stream: &Stream<'_>, pieces: usize) -> u64 {
    let model = stream.model(provider, wire, pieces);
    let (conversation, _) = Conversation::from_base(vec![Message::user("hello").into()]);
    let tools = ToolCatalog::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let ask = || {
        let request = ModelRequest::new(None, &conversation, &tools);
        let answer = runtime.block_on(model.generate(request, DeltaSink::none())).unwrap();
        let [Part::Text(text)] = &*answer.content else { panic!("{answer:?}") };
        assert!(text.text.len() >= pieces * PIECE.len());
    };
    // What is made once.
    ask();
    measure(ask).count_total
}

/// The text of an answer grows ten times as long, which doubles its memory four times at most.
const GROWTH: u64 = 4;

/// How often a piece allocates that has an escape, such as a line break: it is copied to unescape it.
const ESCAPED: u64 = 3;

fn a_piece_allocates<W: Wire>(provider: &Provider, wire: fn() -> W, stream: &Stream<'_>) {
    for (piece, each) in [(stream.piece, 0), (&*stream.piece.replace(PIECE, "pi\\nece"), ESCAPED)] {
        let stream = Stream { piece, ..*stream };
        let [few, many] = [1_000, 10_000].map(|pieces| allocations(provider, wire(), &stream, pieces));
        println!("{}: {few} allocations for 1,000 pieces, {many} for 10,000", W::API);
        assert!((few..=few + GROWTH + 9_000 * each).contains(&many), "{}: {few}, {many}", W::API);
    }
}

#[test]
fn a_piece_of_anthropic_allocates_nothing() {
    a_piece_allocates(&providers::ANTHROPIC, || Anthropic, &ANTHROPIC);
}

#[test]
fn a_piece_of_responses_allocates_nothing() {
    a_piece_allocates(&providers::OPENAI, || Responses, &RESPONSES);
}

#[test]
fn a_piece_of_chat_allocates_nothing() {
    a_piece_allocates(&providers::chat(&Dialect::OPENAI_COMPATIBLE), || Chat::new(Dialect::OPENAI_COMPATIBLE), &CHAT);
}

#[test]
fn a_piece_of_converse_allocates_nothing() {
    a_piece_allocates(&providers::BEDROCK, || Converse, &CONVERSE);
}

#[test]
fn a_piece_of_gemini_allocates_nothing() {
    a_piece_allocates(&providers::GEMINI, || Gemini, &GEMINI);
}
