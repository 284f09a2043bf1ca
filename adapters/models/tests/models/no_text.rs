//! Pieces of answers that are not text: half a pair of surrogates, and bytes that are not UTF-8.

use bytes::Bytes;
use goondan_models::wire::{Anthropic, Chat, Converse, Dialect, Gemini, Responses, Wire};
use goondan_models::{Provider, providers};
use serde_json::json;

use crate::support::{Asked, Played, Sent, Step, config, told};

const ANTHROPIC: &str = r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a PIECE b"}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

data: {"type":"message_stop"}

"#;
const CHAT: &str = r#"data: {"choices":[{"delta":{"content":"a PIECE b"},"finish_reason":"stop"}]}

data: [DONE]

"#;
const CONVERSE: &str = r#"data: {"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"a PIECE b"}}}

data: {"messageStop":{"stopReason":"end_turn"}}

"#;
const GEMINI: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":"a PIECE b"}]},"finishReason":"STOP"}]}

"#;
const RESPONSES: &str = r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m"}}

data: {"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}

data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a PIECE b"}

data: {"type":"response.completed","response":{"status":"completed"}}

"#;

async fn answer<W: Wire>(provider: &Provider, wire: W, stream: &[u8]) -> (String, Vec<String>) {
    let model = config("http://127.0.0.1:9").model(provider, wire).unwrap();
    let played = Played::new(200, [Step::Bytes(Bytes::copy_from_slice(stream))]);
    let (answer, told) = told(&model.with_transport(Sent::to([played])), &Asked::default()).await;
    (answer.unwrap().to_text().into_owned(), told)
}

#[tokio::test]
async fn what_is_not_text_in_a_piece_is_replaced() {
    let expected = "a \u{fffd}x\u{fffd} b";
    for (piece, expected) in [
        (&br"\ud800x\udc00"[..], expected),
        (br"\uDBFFx\uDBFF", expected),
        (b"\xffx\xc3", expected),
        (br"\ud83d\ude00 \\ud800 \u00e9", "a \u{1f600} \\ud800 \u{e9} b"),
    ] {
        let with = |stream: &str| {
            let (before, after) = stream.split_once("PIECE").unwrap();
            [before.as_bytes(), piece, after.as_bytes()].concat()
        };
        let dialect = Dialect::ALL.into_iter().find(|dialect| dialect.name == "openai-compatible").unwrap();
        for (text, told) in [
            answer(&providers::ANTHROPIC, Anthropic, &with(ANTHROPIC)).await,
            answer(&providers::chat(&dialect), Chat::new(dialect), &with(CHAT)).await,
            answer(&providers::BEDROCK, Converse, &with(CONVERSE)).await,
            answer(&providers::GEMINI, Gemini, &with(GEMINI)).await,
            answer(&providers::OPENAI, Responses, &with(RESPONSES)).await,
        ] {
            assert_eq!(text, expected, "{told:?}");
        }
    }
}

#[tokio::test]
async fn what_is_not_text_in_an_argument_is_replaced() {
    let arguments = r#"{"city": "S\\ud800"}"#.replace('"', "\\\"");
    let call = format!(r#"{{"index":0,"id":"1","function":{{"name":"weather__today","arguments":"{arguments}"}}}}"#);
    let stream =
        format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}},\"finish_reason\":\"stop\"}}]}}\n\n");
    let dialect = Dialect::ALL.into_iter().find(|dialect| dialect.name == "openai-compatible").unwrap();
    let model = config("http://127.0.0.1:9").model(&providers::chat(&dialect), Chat::new(dialect)).unwrap();
    let (answer, _) = told(&model.with_transport(Sent::to([Played::events(&stream)])), &Asked::default()).await;
    let calls: Vec<_> = answer.unwrap().calls().map(|call| call.input.clone()).collect();
    assert_eq!(calls, [json!({ "city": "S\u{fffd}" })]);
}
