//! Every recorded stream gives the same answer however its bytes arrive, and the next request gives its blocks back.

use goondan_core::ToolOutput;
use goondan_covers::covers;
use goondan_models::wire::{Anthropic, Chat, Converse, Dialect, Responses, Wire};
use goondan_models::{HttpModel, Provider, providers};
use goondan_runtime::DeltaSink;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Asked, Framing, Played, Recording, Sent, Step, config, told, weather};

/// An interface whose recordings are checked.
struct Case<W> {
    folder: &'static str,
    provider: Provider,
    wire: fn() -> W,
    /// Returns what a request carries of its second message.
    carried: fn(&Value) -> Value,
}

const ANTHROPIC: Case<Anthropic> = Case {
    folder: "anthropic",
    provider: providers::ANTHROPIC,
    wire: || Anthropic,
    carried: |body| body["messages"][1]["content"].clone(),
};

const RESPONSES: Case<Responses> = Case {
    folder: "responses",
    provider: providers::OPENAI,
    wire: || Responses,
    carried: |body| {
        // Everything between the first message of the user and what answers the model.
        let items = body["input"].as_array().unwrap().iter().skip(1);
        items.take_while(|item| item["role"] != "user" && item["type"] != "function_call_output").cloned().collect()
    },
};

const CHAT: Case<Chat> = Case {
    folder: "chat",
    provider: providers::chat(&Dialect::OPENROUTER),
    wire: || Chat::new(Dialect::OPENROUTER),
    carried: |body| body["messages"][1].clone(),
};

impl<W: Wire> Case<W> {
    fn model(&self, sent: &Sent) -> HttpModel<W> {
        config("http://127.0.0.1:9").model(&self.provider, (self.wire)()).unwrap().with_transport(sent.clone())
    }

    async fn decodes_however_the_bytes_arrive(&self) {
        for recording in Recording::all(self.folder) {
            for framing in Framing::ALL {
                let name = format!("{} {framing:?}", recording.name);
                let sent = Sent::to([recording.played(framing)]);
                let (answer, told) = told(&self.model(&sent), &Asked::default()).await;
                assert_eq!(json!(answer.unwrap()), recording.expected["response"], "{name}");
                if let Some(expected) = recording.expected.get("told") {
                    assert_eq!(json!(told), *expected, "{name}");
                }
            }
        }
    }

    async fn gives_the_blocks_back(&self) {
        for recording in Recording::all(self.folder) {
            let sent = Sent::to([recording.played(Framing::Whole)]);
            let model = self.model(&sent);
            let answer = Asked::default().of(&model, DeltaSink::none()).await.unwrap();
            let mut messages = vec![
                json!({ "role": "user", "content": "hello" }),
                json!({ "role": "assistant", "content": answer.content }),
            ];
            let result = |call: &goondan_core::ToolCallPart| {
                let output = ToolOutput::Text("done".to_owned());
                let part = goondan_core::ToolResultPart::new(call.tool_call_id.clone(), &*call.tool_name, output);
                json!({ "role": "tool", "content": [part] })
            };
            messages.extend(answer.calls().map(result));
            if answer.calls().next().is_none() {
                messages.push(json!({ "role": "user", "content": "and then?" }));
            }
            // Some interfaces take calls only beside tools.
            let asked = Asked { tools: vec![weather()], ..Asked::messages(messages.into()) };
            asked.of(&model, DeltaSink::none()).await.unwrap();
            assert_eq!((self.carried)(&sent.bodies()[1]), recording.expected["next"], "{}", recording.name);
        }
    }

    /// Plays the first `kept` bytes of a stream in pieces, and returns the answer.
    fn played_in_pieces(&self, stream: &[u8], cuts: &[usize], kept: usize) -> goondan_core::Result<Value> {
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut % (kept + 1)).chain([0, kept]).collect();
        ends.sort_unstable();
        let pieces = ends.windows(2).map(|ends| Step::Bytes(stream[ends[0]..ends[1]].to_vec().into()));
        let sent = Sent::to([Played::new(200, pieces)]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(Asked::default().of(&self.model(&sent), DeltaSink::none())).map(|answer| json!(answer))
    }

    /// Checks a stream that is split at `cuts`, and one that also lacks everything after `kept`.
    fn any_split_and_any_lost_tail(&self, index: usize, cuts: &[usize], kept: usize) {
        let recordings = Recording::all(self.folder);
        let recording = &recordings[index % recordings.len()];
        let stream = recording.stream();
        let whole = self.played_in_pieces(stream.as_bytes(), cuts, stream.len()).unwrap();
        assert_eq!(whole, recording.expected["response"]);
        // The last event begins at this place, and its last line break may be missing.
        let end = stream.len() - 1;
        let cut = self.played_in_pieces(stream.as_bytes(), cuts, kept % end);
        let error = cut.unwrap_err();
        assert_eq!(error.code(), "E_MODEL_NETWORK", "{error:?}");
        assert!(error.is_retryable());
    }

    /// As [`any_split_and_any_lost_tail`](Self::any_split_and_any_lost_tail), where only counts of tokens and what else
    /// is about the answer can be lost after the reason why the model stopped.
    fn any_split_and_any_tail_with_counts(&self, index: usize, cuts: &[usize], kept: usize) {
        let recordings = Recording::all(self.folder);
        let recording = &recordings[index % recordings.len()];
        let (stream, expected) = (recording.stream(), &recording.expected["response"]);
        let whole = self.played_in_pieces(stream.as_bytes(), cuts, stream.len()).unwrap();
        assert_eq!(whole, *expected);
        let said = |answer: &Value| {
            let mut content = answer["content"].clone();
            for rest in content.as_array_mut().unwrap().iter_mut().filter_map(|part| part.pointer_mut("/provider/rest"))
            {
                rest.as_object_mut().unwrap().shift_remove("aboutAnswer");
            }
            (
                content.to_string().replace(&format!(r#","provider":{}"#, self.without_rest()), ""),
                answer["finishReason"].clone(),
            )
        };
        match self.played_in_pieces(stream.as_bytes(), cuts, kept % stream.len()) {
            Ok(answer) => assert_eq!(said(&answer), said(expected)),
            Err(error) => assert!(error.code() == "E_MODEL_NETWORK" && error.is_retryable(), "{error:?}"),
        }
    }

    /// The data of a provider of which nothing is left.
    fn without_rest(&self) -> Value {
        json!({ "api": W::API, "model": "m", "rest": {} })
    }
}

const CONVERSE: Case<Converse> = Case {
    folder: "converse",
    provider: providers::BEDROCK,
    wire: || Converse,
    carried: |body| {
        let answer = body["messages"].as_array().unwrap().iter().find(|message| message["role"] == "assistant");
        answer.map_or(Value::Null, |message| message["content"].clone())
    },
};

#[tokio::test]
async fn converse_decodes_however_the_bytes_arrive() {
    CONVERSE.decodes_however_the_bytes_arrive().await;
}

#[tokio::test]
#[covers("MODEL-01")]
async fn converse_gives_the_blocks_back() {
    CONVERSE.gives_the_blocks_back().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn converse_survives_any_split_and_any_lost_tail(
        index: usize,
        cuts in prop::collection::vec(any::<usize>(), 0..20),
        kept: usize,
    ) {
        CONVERSE.any_split_and_any_tail_with_counts(index, &cuts, kept);
    }
}

#[tokio::test]
async fn anthropic_decodes_however_the_bytes_arrive() {
    ANTHROPIC.decodes_however_the_bytes_arrive().await;
}

#[tokio::test]
#[covers("MODEL-01")]
async fn anthropic_gives_the_blocks_back() {
    ANTHROPIC.gives_the_blocks_back().await;
}

#[tokio::test]
async fn responses_decode_however_the_bytes_arrive() {
    RESPONSES.decodes_however_the_bytes_arrive().await;
}

#[tokio::test]
#[covers("MODEL-01")]
async fn responses_give_the_items_back() {
    RESPONSES.gives_the_blocks_back().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anthropic_survives_any_split_and_any_lost_tail(
        index: usize,
        cuts in prop::collection::vec(any::<usize>(), 0..20),
        kept: usize,
    ) {
        ANTHROPIC.any_split_and_any_lost_tail(index, &cuts, kept);
    }

    #[test]
    fn responses_survive_any_split_and_any_lost_tail(
        index: usize,
        cuts in prop::collection::vec(any::<usize>(), 0..20),
        kept: usize,
    ) {
        RESPONSES.any_split_and_any_lost_tail(index, &cuts, kept);
    }
}

#[tokio::test]
async fn chat_decodes_however_the_bytes_arrive() {
    CHAT.decodes_however_the_bytes_arrive().await;
}

#[tokio::test]
async fn chat_gives_the_messages_back() {
    CHAT.gives_the_blocks_back().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chat_survives_any_split_and_any_lost_tail(
        index: usize,
        cuts in prop::collection::vec(any::<usize>(), 0..20),
        kept: usize,
    ) {
        CHAT.any_split_and_any_tail_with_counts(index, &cuts, kept);
    }
}

/// A value that may be in an event, or be none of its members.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3u64).prop_map(Value::from),
        Just(json!(u64::MAX)),
        "(stop|error|text|thinking|reasoning.text|a|[0-9]|)".prop_map(Value::from),
    ];
    let names = "(choices|delta|index|finish_reason|content|type|text|thinking|tool_calls|id|function|name|arguments|\
                 reasoning|reasoning_details|refusal|usage|prompt_tokens|error|other)";
    leaf.prop_recursive(6, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((names, inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a server sends is an answer or an error, and what is stored of it can be sent back.
    #[test]
    fn chat_survives_events_of_any_form(
        deltas in prop::collection::vec(value(), 0..6),
        chunk in value(),
        finish in prop::option::of("(stop|tool_calls|other)"),
    ) {
        let delta = |delta: &Value| format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }));
        let mut stream: String = deltas.iter().map(delta).collect();
        stream += &format!("data: {chunk}\n\n");
        stream += &format!("data: {}\n\n", json!({ "choices": [{ "finish_reason": finish }] }));
        let Ok(answer) = CHAT.played_in_pieces(stream.as_bytes(), &[], stream.len()) else { return Ok(()) };
        let sent = Sent::to([Recording::all(CHAT.folder)[0].played(Framing::Whole)]);
        let messages = json!([
            { "role": "user", "content": "hello" },
            { "role": "assistant", "content": answer["content"] },
            { "role": "user", "content": "and then?" },
        ]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(Asked::messages(messages).of(&CHAT.model(&sent), DeltaSink::none())).unwrap();
    }
}

const GEMINI: Case<goondan_models::wire::Gemini> = Case {
    folder: "gemini",
    provider: providers::GEMINI,
    wire: || goondan_models::wire::Gemini,
    carried: |body| {
        let answer = body["contents"].as_array().unwrap().iter().find(|content| content["role"] == "model");
        answer.map_or(Value::Null, |content| content["parts"].clone())
    },
};

#[tokio::test]
async fn gemini_decodes_however_the_bytes_arrive() {
    GEMINI.decodes_however_the_bytes_arrive().await;
}

#[tokio::test]
async fn gemini_gives_the_parts_back() {
    GEMINI.gives_the_blocks_back().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gemini_survives_any_split_and_any_lost_tail(
        index: usize,
        cuts in prop::collection::vec(any::<usize>(), 0..20),
        kept: usize,
    ) {
        GEMINI.any_split_and_any_lost_tail(index, &cuts, kept);
    }
}
