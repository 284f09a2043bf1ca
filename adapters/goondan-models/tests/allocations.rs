//! The allocations of a piece of a streamed answer, which can be counted instead of timed, so that they hold on every
//! machine.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use allocation_counter::measure;
use goondan_core::{BoxFuture, Conversation, Deltas, Message, Model, ModelRequest, Part, ToolCatalog};
use goondan_models::http::{Failure, Incoming, Outgoing, Transport};
use goondan_models::wire::{Anthropic, Chat, Dialect, Gemini, Responses, Wire};
use goondan_models::{ModelConfig, Provider, providers};
use http::{HeaderMap, StatusCode};

const PIECE: &str = " piece";

/// A stream that consists of [`PIECE`] again and again, between a start and an end.
struct Stream<'a> {
    start: &'static str,
    piece: &'a str,
    end: &'static str,
}

const ANTHROPIC: Stream<'_> = Stream {
    start: concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":9}}}"#,
        "\n\nevent: content_block_start\n",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        "\n\n"
    ),
    piece: concat!(
        "event: content_block_delta\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" piece"}}"#,
        "\n\n"
    ),
    end: concat!("event: message_stop\n", r#"data: {"type":"message_stop"}"#, "\n\n"),
};

const RESPONSES: Stream<'_> = Stream {
    start: concat!(
        "event: response.created\n",
        r#"data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m"}}"#,
        "\n\n"
    ),
    piece: concat!(
        "event: response.output_text.delta\n",
        r#"data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"#,
        r#""content_index":0,"delta":" piece","logprobs":[],"obfuscation":"zp2xyF"}"#,
        "\n\n"
    ),
    end: concat!(
        "event: response.completed\n",
        r#"data: {"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","model":"m"}}"#,
        "\n\n"
    ),
};

const CHAT: Stream<'_> = Stream {
    start: concat!(
        r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795305600,"model":"m","#,
        r#""choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        "\n\n"
    ),
    piece: concat!(
        r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795305600,"model":"m","#,
        r#""system_fingerprint":"fp_1","usage":null,"#,
        r#""choices":[{"index":0,"delta":{"content":" piece"},"logprobs":null,"finish_reason":null}]}"#,
        "\n\n"
    ),
    end: concat!(r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#, "\n\ndata: [DONE]\n\n"),
};

const GEMINI: Stream<'_> = Stream {
    start: "",
    piece: concat!(
        r#"data: {"candidates":[{"content":{"parts":[{"text":" piece"}],"role":"model"},"index":0}],"#,
        r#""usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"totalTokenCount":12,"#,
        r#""promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]},"#,
        r#""modelVersion":"gemini-3-flash","responseId":"r-1"}"#,
        "\n\n"
    ),
    end: concat!(
        r#"data: {"candidates":[{"content":{"parts":[{"text":"."}],"role":"model"},"finishReason":"STOP"}]}"#,
        "\n\n"
    ),
};

/// Answers each request with a stream that has arrived.
struct Arrived(bytes::Bytes);

impl Transport for Arrived {
    fn send(&self, _: Outgoing) -> BoxFuture<'_, Result<Incoming, Failure>> {
        Box::pin(async { Ok(Incoming::new(StatusCode::OK, HeaderMap::new(), self.0.clone())) })
    }
}

/// Returns how often a request allocates whose answer has this number of pieces.
fn allocations<W: Wire>(provider: &Provider, wire: W, stream: &Stream<'_>, pieces: usize) -> u64 {
    let bytes = format!("{}{}{}", stream.start, stream.piece.repeat(pieces), stream.end);
    let mut config = ModelConfig::new("m");
    config.base_url = Some("http://127.0.0.1:9".to_owned());
    config.api_key = Some(goondan_core::Secret::new("key-for-tests-4711"));
    let model = config.model(provider, wire).unwrap().with_transport(Arrived(bytes.into()));
    let (conversation, _) = Conversation::from_base(vec![Message::user("hello").into()]);
    let tools = ToolCatalog::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let ask = || {
        let request = ModelRequest::new(None, &conversation, &tools);
        let answer = runtime.block_on(model.generate(request, Deltas::none())).unwrap();
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
fn a_piece_of_gemini_allocates_nothing() {
    a_piece_allocates(&providers::GEMINI, || Gemini, &GEMINI);
}
