//! Streams that consist of one piece again and again, and a model that is answered with them.

use goondan_core::{BoxFuture, Secret};
use goondan_models::http::{Failure, Incoming, Outgoing, Transport};
use goondan_models::wire::Wire;
use goondan_models::{HttpModel, ModelConfig, Provider};
use http::{HeaderMap, StatusCode};

pub(crate) const PIECE: &str = " piece";

/// A stream that consists of [`PIECE`] again and again, between a start and an end.
pub(crate) struct Stream<'a> {
    pub(crate) start: &'static str,
    pub(crate) piece: &'a str,
    pub(crate) end: &'static str,
}

pub(crate) const ANTHROPIC: Stream<'_> = Stream {
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

pub(crate) const RESPONSES: Stream<'_> = Stream {
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

pub(crate) const CHAT: Stream<'_> = Stream {
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

pub(crate) const CONVERSE: Stream<'_> = Stream {
    start: concat!(r#"data: {"messageStart":{"role":"assistant","p":"abcdefghij"}}"#, "\n\n"),
    piece: concat!(
        r#"data: {"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":" piece"},"p":"abcdefghijkl"}}"#,
        "\n\n"
    ),
    end: concat!(
        r#"data: {"messageStop":{"stopReason":"end_turn"}}"#,
        "\n\n",
        r#"data: {"metadata":{"usage":{"inputTokens":9,"outputTokens":3,"totalTokens":12}}}"#,
        "\n\n"
    ),
};

pub(crate) const GEMINI: Stream<'_> = Stream {
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

impl Stream<'_> {
    /// Returns a model whose answers have this number of pieces.
    pub(crate) fn model<W: Wire>(&self, provider: &Provider, wire: W, pieces: usize) -> HttpModel<W> {
        let bytes = format!("{}{}{}", self.start, self.piece.repeat(pieces), self.end);
        let mut config = ModelConfig::new("m");
        config.base_url = Some("http://127.0.0.1:9".to_owned());
        config.api_key = Some(Secret::new("key-for-tests-4711"));
        config.model(provider, wire).unwrap().with_transport(Arrived(bytes.into()))
    }
}

/// Answers each request with a stream that has arrived.
struct Arrived(bytes::Bytes);

impl Transport for Arrived {
    fn send(&self, _: Outgoing) -> BoxFuture<'_, Result<Incoming, Failure>> {
        Box::pin(async { Ok(Incoming::new(StatusCode::OK, HeaderMap::new(), self.0.clone())) })
    }
}
