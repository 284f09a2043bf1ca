//! What requests to Anthropic carry.

use goondan_core::{ErrorCode, ModelFinish};
use goondan_covers::covers;
use goondan_models::wire::Anthropic;
use goondan_models::{HttpModel, ModelConfig, providers};
use serde_json::{Value, json};

use crate::support::{self, Asked, Played, Sent, ask, config, data, result, sent_body, text, told, weather};

const ANSWER: &str = "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"message_stop\"}\n\n";

fn model(config: ModelConfig, sent: &Sent) -> HttpModel<Anthropic> {
    config.model(&providers::ANTHROPIC, Anthropic).unwrap().with_transport(sent.clone())
}

/// Returns the body of a request to the model `name`.
async fn body_of(name: &str, asked: Asked) -> goondan_core::Result<Value> {
    sent_body(&providers::ANTHROPIC, Anthropic, name, ANSWER, asked).await
}

async fn body(asked: Asked) -> Value {
    body_of("m", asked).await.unwrap()
}

async fn messages(messages: Value) -> Value {
    body(Asked::messages(messages).options(json!({ "cache": "off" }))).await["messages"].take()
}

fn call(id: &str, provider: Option<Value>) -> Value {
    support::call(id, json!({}), provider)
}

fn thought(model: &str, rest: Value) -> Value {
    json!({ "type": "reasoning", "text": "hm", "provider": data("anthropic", model, rest) })
}

#[tokio::test]
async fn a_request_has_instructions_tools_and_messages_with_marks_of_the_cache() {
    let mut asked = Asked { system: Some("Be brief."), tools: vec![weather()], ..Asked::default() };
    asked.messages = json!([{ "role": "system", "content": "Today is Monday." }, { "role": "user", "content": "hi" }]);
    let mark = json!({ "type": "ephemeral" });
    let expected = json!({
        "model": "m",
        "max_tokens": 8192,
        "stream": true,
        "tools": [{
            "name": "weather__today",
            "description": "Tells the weather.",
            "input_schema": { "type": "object", "properties": {} },
        }],
        "system": [
            { "type": "text", "text": "Be brief." },
            { "type": "text", "text": "Today is Monday.", "cache_control": mark },
        ],
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi", "cache_control": mark }] }],
    });
    assert_eq!(body(asked.clone()).await, expected);
    let off = body(asked.clone().options(json!({ "cache": "off" }))).await.to_string();
    assert!(!off.contains("cache_control"), "{off}");
    let long = body(asked.options(json!({ "cache": "long" }))).await.to_string();
    assert_eq!(long.matches(r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#).count(), 2, "{long}");
}

#[tokio::test]
#[covers("CACHE-01")]
async fn the_end_of_the_request_before_is_marked_again() {
    let marked = |body: &Value| {
        let blocks =
            body["messages"].as_array().unwrap().iter().flat_map(|message| message["content"].as_array().unwrap());
        let marked = blocks.filter(|block| block.get("cache_control").is_some());
        marked.map(|block| block["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    asked.messages = json!([{ "role": "user", "content": "one" }]);
    let first = body(asked.clone()).await;
    assert_eq!(marked(&first), ["one"]);
    assert!(first["tools"][0].get("cache_control").is_some(), "without instructions");
    asked.messages = json!([
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": "an answer" },
        { "role": "user", "content": "two" },
        { "role": "system", "content": "three" },
    ]);
    assert_eq!(marked(&body(asked).await), ["one", "<system>\nthree\n</system>"]);
}

#[tokio::test]
async fn neighbours_are_merged_results_come_first_and_blank_texts_are_left_out() {
    let conversation = json!([
        { "role": "assistant", "content": "earlier" },
        { "role": "user", "content": "a" },
        { "role": "user", "content": [{ "type": "text", "text": "b" }, { "type": "text", "text": " \n" }] },
        { "role": "assistant", "content": [call("1", None), call("2", None)] },
        result("1", text("one")),
        { "role": "system", "content": "Mind the gap." },
        result("2", json!({ "type": "json", "value": { "two": 2 } })),
        { "role": "assistant", "content": " " },
        { "role": "user", "content": "c" },
    ]);
    let call = |id| json!({ "type": "tool_use", "id": id, "name": "weather__today", "input": {} });
    let text = |text| json!({ "type": "text", "text": text });
    let expected = json!([
        { "role": "user", "content": [text("[The beginning of the conversation is left out.]")] },
        { "role": "assistant", "content": [text("earlier")] },
        { "role": "user", "content": [text("a"), text("b")] },
        { "role": "assistant", "content": [call("1"), call("2")] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "1", "content": "one" },
            { "type": "tool_result", "tool_use_id": "2", "content": "{\"two\":2}" },
            text("<system>\nMind the gap.\n</system>"),
            text("c"),
        ] },
    ]);
    assert_eq!(messages(conversation).await, expected);
}

#[tokio::test]
async fn what_a_tool_says_of_its_failure_is_marked_as_an_error() {
    let mut failed = result("1", text("there is no such city"));
    failed["content"][0]["isError"] = true.into();
    let conversation =
        json!([{ "role": "user", "content": "a" }, { "role": "assistant", "content": [call("1", None)] }, failed]);
    let block = messages(conversation).await[2]["content"][0].take();
    let expected = json!({
        "type": "tool_result", "tool_use_id": "1", "content": "there is no such city", "is_error": true,
    });
    assert_eq!(block, expected);
}

#[tokio::test]
async fn what_another_provider_or_model_made_goes_back_without_its_data() {
    let signed = json!({ "signature": "s" });
    let block = |api, model| json!({ "type": "provider", "provider": data(api, model, json!({ "type": "search" })) });
    let said = |api, rest| json!({ "type": "text", "text": "t", "provider": data(api, "other", rest) });
    let conversation = json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [
            thought("m", signed.clone()),
            thought("other", signed),
            thought("m", json!({})),
            { "type": "reasoning", "text": "hm" },
            { "type": "reasoning", "text": "hm", "provider": data("openai", "m", json!({ "signature": "s" })) },
            block("anthropic", "m"),
            block("anthropic", "other"),
            block("gemini", "m"),
            said("anthropic", json!({ "citations": [] })),
            said("gemini", json!({ "thoughtSignature": "g" })),
            { "type": "of-tomorrow", "text": "?" },
            call("functions.weather:0", Some(data("openai-chat", "x", json!({ "id": "y", "index": 0 })))),
        ] },
        result("functions.weather:0", text("")),
        { "role": "user", "content": "b" },
    ]);
    let messages = messages(conversation).await;
    let id = messages[2]["content"][0]["tool_use_id"].as_str().unwrap();
    assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{id}");
    let expected = json!([
        { "type": "thinking", "thinking": "hm", "signature": "s" },
        { "type": "search" },
        { "type": "text", "text": "t", "citations": [] },
        { "type": "text", "text": "t" },
        { "type": "tool_use", "id": id, "name": "weather__today", "input": {} },
    ]);
    assert_eq!(messages[1]["content"], expected);
}

#[tokio::test]
async fn files_are_sent_if_the_provider_can_read_them() {
    let png = json!({ "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw==", "name": "a" });
    let pdf =
        json!({ "type": "file", "mediaType": "application/pdf", "url": "https://a.example/b.pdf", "name": "b.pdf" });
    let video =
        json!({ "type": "file", "mediaType": "video/mp4", "url": "data:video/mp4;base64,AAAA", "name": "c.mp4" });
    let conversation = json!([
        { "role": "user", "content": [png, pdf, video] },
        { "role": "assistant", "content": [png, call("1", None)] },
        result("1", json!({ "type": "content", "value": [{ "type": "text", "text": "see" }, png, video] })),
    ]);
    let image =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "iVBORw==" } });
    let unread = json!({
        "type": "text",
        "text": "[A file `c.mp4` of the type video/mp4 is not shown: this model cannot read it.]",
    });
    let messages = messages(conversation).await;
    let document =
        json!({ "type": "document", "source": { "type": "url", "url": "https://a.example/b.pdf" }, "title": "b.pdf" });
    assert_eq!(messages[0]["content"], json!([image, document, unread]));
    assert_eq!(messages[1]["content"][0]["type"], "text");
    assert_eq!(messages[2]["content"][0]["content"], json!([{ "type": "text", "text": "see" }, image, unread]));
}

#[tokio::test]
async fn options_become_members_and_the_providers_own_come_last() {
    let options = json!({
        "maxOutputTokens": 3000,
        "temperature": 1.0,
        "topP": 0.95,
        "stop": ["END"],
        "reasoning": { "budgetTokens": 2000, "summary": "off" },
        "toolChoice": "auto",
        "parallelToolCalls": false,
        "responseFormat": { "name": "answer", "schema": { "type": "object" } },
        "provider": {
            "top_k": 4,
            "max_tokens": 4000,
            "metadata": { "user_id": "u" },
            "output_config": { "effort": "xhigh" },
            "tools": [{ "type": "web_search_20250305", "name": "web_search" }],
        },
    });
    let mut body = body(Asked { tools: vec![weather()], ..Asked::default() }.options(options)).await;
    let tools: Vec<_> = body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(tools, ["web_search", "weather__today"]);
    let members = body.as_object_mut().unwrap();
    members.retain(|name, _| !["tools", "messages", "model", "stream"].contains(&name.as_str()));
    let expected = json!({
        "max_tokens": 4000,
        "temperature": 1.0,
        "top_p": 0.95,
        "stop_sequences": ["END"],
        "thinking": { "type": "enabled", "budget_tokens": 2000, "display": "omitted" },
        "tool_choice": { "type": "auto", "disable_parallel_tool_use": true },
        "output_config": { "format": { "type": "json_schema", "schema": { "type": "object" } }, "effort": "xhigh" },
        "top_k": 4,
        "metadata": { "user_id": "u" },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn choices_of_tools_have_their_words() {
    for (choice, expected) in [
        (json!("auto"), json!({ "type": "auto" })),
        (json!("none"), json!({ "type": "none" })),
        (json!("required"), json!({ "type": "any" })),
        (json!({ "tool": "weather__today" }), json!({ "type": "tool", "name": "weather__today" })),
    ] {
        let asked = Asked { tools: vec![weather()], ..Asked::default() };
        assert_eq!(body(asked.options(json!({ "toolChoice": choice }))).await["tool_choice"], expected);
    }
}

#[tokio::test]
async fn reasoning_is_what_the_model_can_do() {
    for (model, options, max_tokens, thinking, effort) in [
        ("m", json!({}), 8192, json!(null), json!(null)),
        ("m", json!({ "effort": "none", "budgetTokens": 2000 }), 8192, json!({ "type": "disabled" }), json!(null)),
        (
            "m",
            json!({ "effort": "high", "summary": "auto" }),
            28_192,
            json!({ "type": "adaptive", "display": "summarized" }),
            json!("high"),
        ),
        ("m", json!({ "effort": "minimal" }), 9216, json!({ "type": "adaptive" }), json!("low")),
        ("m", json!({ "budgetTokens": 1024 }), 9216, json!({ "type": "enabled", "budget_tokens": 1024 }), json!(null)),
        (
            "claude-sonnet-4-5-20250929",
            json!({ "effort": "low" }),
            12_288,
            json!({ "type": "enabled", "budget_tokens": 4096 }),
            json!(null),
        ),
    ] {
        let body = body_of(model, Asked::default().options(json!({ "reasoning": options }))).await.unwrap();
        let found = (&body["max_tokens"], &body["thinking"], &body["output_config"]["effort"]);
        assert_eq!(found, (&json!(max_tokens), &thinking, &effort), "{model} {options}");
    }
}

#[tokio::test]
async fn a_budget_is_left_out_when_another_model_began_the_turn() {
    let asked = |thoughts: Value, newest: Value| {
        let mut answer = thoughts.as_array().unwrap().clone();
        answer.push(call("1", None));
        let conversation = json!([
            { "role": "user", "content": "a" },
            { "role": "assistant", "content": answer },
            result("1", text("one")),
            { "role": "assistant", "content": [call("2", None)] },
            newest,
        ]);
        Asked::messages(conversation).options(json!({ "reasoning": { "budgetTokens": 2000 } }))
    };
    let signed = || json!([thought("m", json!({ "signature": "s" }))]);
    let foreign = || json!([thought("other", json!({ "signature": "s" }))]);
    let newest = || result("2", text("two"));
    assert_eq!(body(asked(signed(), newest())).await["thinking"]["type"], "enabled");
    assert_eq!(body(asked(foreign(), newest())).await["thinking"]["type"], "disabled");
    // The calls of an earlier turn do not matter.
    let mut earlier = asked(foreign(), newest());
    earlier.messages.as_array_mut().unwrap().push(json!({ "role": "assistant", "content": "done" }));
    earlier.messages.as_array_mut().unwrap().push(json!({ "role": "user", "content": "b" }));
    assert_eq!(body(earlier).await["thinking"]["type"], "enabled");
}

#[tokio::test]
async fn options_that_cannot_be_honoured_are_refused_before_anything_is_sent() {
    for (options, option) in [
        (json!({ "seed": 1 }), "seed"),
        (json!({ "reasoning": { "summary": "detailed", "effort": "low" } }), "reasoning/summary"),
        (json!({ "reasoning": { "budgetTokens": 5 } }), "reasoning/budgetTokens"),
        (json!({ "reasoning": { "budgetTokens": 2000 }, "maxOutputTokens": 2000 }), "reasoning"),
        (json!({ "reasoning": { "budgetTokens": 2000 }, "temperature": 0.5 }), "temperature"),
        (json!({ "reasoning": { "budgetTokens": 2000 }, "topP": 0.9 }), "topP"),
        (json!({ "toolChoice": "required" }), "toolChoice"),
        (json!({ "toolChoice": { "tool": "a__b" } }), "toolChoice"),
        (json!({ "provider": { "messages": [] } }), "provider/messages"),
    ] {
        let error = body_of("m", Asked::default().options(options.clone())).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::MODEL_OPTION, "{options}");
        assert_eq!(error.details()["option"], option, "{error}");
        assert!(!error.is_retryable());
    }
    let mut config = config("http://127.0.0.1:9");
    config.options.seed = Some(1);
    assert_eq!(*config.model(&providers::ANTHROPIC, Anthropic).unwrap_err().code(), ErrorCode::MODEL_OPTION);
}

#[tokio::test]
async fn a_call_id_that_is_taken_or_empty_is_replaced_before_watchers_see_it() {
    let start = |index: u32, id: &str| {
        let block = json!({ "type": "tool_use", "id": id, "name": "weather__today", "input": {} });
        format!("data: {}\n\n", json!({ "type": "content_block_start", "index": index, "content_block": block }))
    };
    let stream = [start(0, "1"), start(1, "2"), start(2, "2"), start(3, "")].concat();
    let sent = Sent::to([Played::events(&format!("{stream}data: {{\"type\":\"message_stop\"}}\n\n"))]);
    let conversation = json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [call("1", None)] },
        result("1", text("one")),
    ]);
    let (answer, told) =
        crate::support::told(&model(config("http://127.0.0.1:9"), &sent), &Asked::messages(conversation)).await;
    let answer = answer.unwrap();
    let ids: Vec<_> = answer.calls().map(|call| call.tool_call_id.as_str()).collect();
    let expected: Vec<_> =
        ids.iter().enumerate().map(|(part, id)| format!("{part} call {id} weather__today")).collect();
    assert_eq!(told, expected);
    assert_eq!(ids[1], "2");
    let unique: std::collections::BTreeSet<_> = ids.iter().copied().chain(["1", ""]).collect();
    assert_eq!(unique.len(), 6, "{ids:?}");
    let own = |part: usize| json!(answer.content[part])["provider"]["rest"]["id"].clone();
    assert_eq!([own(0), own(2), own(3)], [json!("1"), json!("2"), json!(null)]);
}

/// Some gateways leave the type out of the data, and some add the end of another interface.
#[tokio::test]
async fn the_name_of_an_event_is_enough() {
    let stream = concat!(
        "event: message_start\ndata: {\"message\":{\"model\":\"m-1\",\"usage\":null}}\n\n",
        "event: ping\ndata: {}\n\n",
        "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi.\"}}\n\n",
        "event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":null}\n\n",
        "event: message_stop\ndata: {}\n\n",
        "data: [DONE]\n\n",
    );
    let sent = Sent::to([Played::events(stream)]);
    let answer = ask(&model(config("http://127.0.0.1:9"), &sent)).await.unwrap();
    assert_eq!((&*answer.to_text(), answer.model.as_deref()), ("Hi.", Some("m-1")));
    assert_eq!(answer.finish_reason, Some(ModelFinish::Stop));
}

#[tokio::test]
#[covers("MODEL-01")]
async fn the_container_of_an_answer_goes_back_until_it_is_refused() {
    let events = [
        json!({ "type": "message_start", "message": { "container": null } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "done" } }),
        json!({ "type": "message_delta", "delta": {
            "stop_reason": "end_turn", "container": { "id": "container_1", "expires_at": "2026-01-01T00:00:00Z" },
        } }),
        json!({ "type": "message_stop" }),
    ];
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let sent = Sent::to([Played::events(&stream)]);
    let answer = ask(&model(config("http://127.0.0.1:9"), &sent)).await.unwrap();
    let asked = Asked::messages(json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": answer.content },
        { "role": "user", "content": "b" },
    ]));
    let sent = body(asked.clone()).await;
    assert_eq!(sent["container"], "container_1");
    assert_eq!(sent["messages"][1]["content"], json!([{ "type": "text", "text": "done" }]));
    let skills = json!({ "skills": [{ "type": "anthropic", "skill_id": "pptx" }] });
    let sent = body(asked.clone().options(json!({ "provider": { "container": skills } }))).await;
    assert_eq!(sent["container"]["id"], "container_1");
    assert_eq!(sent["container"]["skills"][0]["skill_id"], "pptx");
    assert_eq!(body(Asked::default()).await.get("container"), None);

    // A conversation must never be stuck.
    let report =
        json!({ "error": { "type": "invalid_request_error", "message": "Container container_1 has expired" } });
    let refusing = Sent::to([Played::json(400, &report), Played::events(&stream)]);
    let (answer, _) = told(&model(config("http://127.0.0.1:9"), &refusing), &asked).await;
    assert_eq!(answer.unwrap().to_text(), "done");
    let containers: Vec<_> = refusing.bodies().iter().map(|body| body.get("container").cloned()).collect();
    assert_eq!(containers, [Some(json!("container_1")), None]);
}
