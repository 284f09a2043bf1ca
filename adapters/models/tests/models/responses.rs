//! What requests to OpenAI carry, and what becomes of streams that are not like the recorded ones.

use std::collections::BTreeSet;

use goondan_core::{Error, ErrorCode, ToolItem};
use goondan_models::wire::Responses;
use goondan_models::{HttpModel, providers};
use goondan_runtime::DeltaSink;
use serde_json::{Value, json};

use crate::support::{
    self, Asked, Played, Recording, Reply, Sent, Server, ask, config, data, result, sent_body, text, told, weather,
};

const ANSWER: &str = "data: {\"type\":\"response.created\",\"response\":{}}\n\n\
                      data: {\"type\":\"response.completed\",\"response\":{}}\n\n";

/// Returns a model `name` that is played `played`.
fn model(name: &str, sent: &Sent) -> HttpModel<Responses> {
    let mut config = config("http://127.0.0.1:9");
    config.model = name.to_owned();
    config.model(&providers::OPENAI, Responses).unwrap().with_transport(sent.clone())
}

/// Returns the body of a request to the model `name`.
async fn body_of(name: &str, asked: Asked) -> goondan_core::Result<Value> {
    sent_body(&providers::OPENAI, Responses, name, ANSWER, asked).await
}

async fn body(asked: Asked) -> Value {
    body_of("m", asked).await.unwrap()
}

async fn input(messages: Value) -> Value {
    body(Asked::messages(messages)).await["input"].take()
}

/// Returns the events as a stream.
fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn thought(model: &str, rest: Value) -> Value {
    json!({ "type": "reasoning", "text": "", "provider": data("openai", model, rest) })
}

fn encrypted(id: &str) -> Value {
    json!({ "id": id, "encrypted_content": "gAAAAA", "summary": [] })
}

fn said(model: &str, id: &str) -> Value {
    let rest = json!({ "id": id, "status": "completed", "content": { "type": "output_text", "annotations": [] } });
    json!({ "type": "text", "text": "t", "provider": data("openai", model, rest) })
}

fn call(id: &str, provider: Option<Value>) -> Value {
    support::call(id, json!({ "a": 1 }), provider)
}

/// Returns the items of an answer with these parts.
async fn items(content: Value) -> Value {
    let mut conversation = json!([{ "role": "user", "content": "a" }, { "role": "assistant", "content": content }]);
    let calls = content.as_array().unwrap().iter().filter(|part| part["type"] == "tool-call");
    let results = calls.map(|call| result(call["toolCallId"].as_str().unwrap(), text("done")));
    conversation.as_array_mut().unwrap().extend(results);
    let items = input(conversation).await;
    let items = items.as_array().unwrap().iter().skip(1);
    items.filter(|item| item["type"] != "function_call_output").cloned().collect()
}

#[tokio::test]
async fn a_request_has_instructions_tools_and_items() {
    let mut asked = Asked { system: Some("Be brief."), tools: vec![weather()], ..Asked::default() };
    asked.messages = json!([
        { "role": "system", "content": "Today is Monday." },
        { "role": "user", "content": "hi" },
        { "role": "user", "content": [{ "type": "text", "text": "you" }, { "type": "text", "text": " \n" }] },
        { "role": "assistant", "content": [{ "type": "text", "text": "I look." }, call("1", None), call("2", None)] },
        result("1", text("one")),
        result("2", json!({ "type": "json", "value": { "two": 2 } })),
        { "role": "assistant", "content": " " },
        { "role": "assistant", "content": "Sunny." },
        { "role": "user", "content": "thanks" },
    ]);
    let say =
        |role, text| json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] });
    let said = |text: &str| json!({ "type": "message", "role": "assistant", "content": text });
    let call =
        |id| json!({ "type": "function_call", "call_id": id, "name": "weather__today", "arguments": "{\"a\":1}" });
    let expected = json!({
        "model": "m",
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "tools": [{
            "type": "function",
            "name": "weather__today",
            "description": "Tells the weather.",
            "parameters": { "type": "object", "properties": {} },
            "strict": false,
        }],
        "instructions": "Be brief.",
        "input": [
            say("developer", "Today is Monday."),
            say("user", "hi"),
            say("user", "you"),
            said("I look."),
            call("1"),
            call("2"),
            { "type": "function_call_output", "call_id": "1", "output": "one" },
            { "type": "function_call_output", "call_id": "2", "output": "{\"two\":2}" },
            said("Sunny."),
            say("user", "thanks"),
        ],
    });
    assert_eq!(body(asked).await, expected);
}

#[tokio::test]
async fn what_another_provider_or_model_made_goes_back_without_its_data() {
    let search = |api, model| {
        let rest = json!({ "id": "ws", "type": "web_search_call", "status": "completed" });
        json!({ "type": "provider", "provider": data(api, model, rest) })
    };
    let called = |model| Some(data("openai", model, json!({ "id": "fc", "status": "completed" })));
    let found = items(json!([
        thought("m", encrypted("rs_1")),
        search("openai", "m"),
        said("m", "msg_1"),
        call("1", called("m")),
        thought("other", encrypted("rs_2")),
        search("openai", "other"),
        said("other", "msg_2"),
        call("2", called("other")),
        { "type": "reasoning", "text": "hm", "provider": data("anthropic", "m", json!({ "signature": "s" })) },
        { "type": "reasoning", "text": "hm" },
        search("gemini", "m"),
        { "type": "text", "text": "u", "provider": data("anthropic", "m", json!({ "citations": [] })) },
        { "type": "of-tomorrow", "text": "?" },
        call(&"x".repeat(65), Some(data("openai-compatible", "m", json!({ "index": 0 })))),
    ]))
    .await;
    let long = found[7]["call_id"].as_str().unwrap();
    assert!(long.len() <= 64 && !long.contains('x'), "{long}");
    let mut expected = json!([
        { "type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAAA", "summary": [] },
        { "type": "web_search_call", "id": "ws", "status": "completed" },
        { "type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
            "content": [{ "type": "output_text", "text": "t", "annotations": [] }] },
        { "type": "function_call", "id": "fc", "status": "completed", "call_id": "1", "name": "weather__today",
            "arguments": "{\"a\":1}" },
        // Ids are bound to the reasoning that they came with.
        { "type": "message", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": "t", "annotations": [] }] },
        { "type": "function_call", "status": "completed", "call_id": "2", "name": "weather__today",
            "arguments": "{\"a\":1}" },
        { "type": "message", "role": "assistant", "content": "u" },
        { "type": "function_call", "name": "weather__today", "arguments": "{\"a\":1}" },
    ]);
    expected[7]["call_id"] = long.into();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn reasoning_that_the_provider_cannot_read_again_is_left_out_with_the_ids_bound_to_it() {
    let stored = thought("m", json!({ "id": "rs_1", "summary": [], "encrypted_content": null }));
    let found = items(json!([stored, said("m", "msg_1")])).await;
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!((&found[0]["type"], found[0].get("id")), (&json!("message"), None));

    // Reasoning after which nothing comes.
    let found = items(json!([said("m", "msg_1"), thought("m", encrypted("rs_1"))])).await;
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["id"], "msg_1");
    let shell = data("openai", "m", json!({ "id": "sh_1", "type": "shell_call", "call_id": "call_1" }));
    let found = items(json!([thought("m", encrypted("rs_1")), { "type": "provider", "provider": shell }])).await;
    assert_eq!(found, json!([]), "a call that waits for an output of ours, with its reasoning");
}

#[tokio::test]
async fn entries_become_one_item_again_only_as_neighbours_of_one_id() {
    let found = items(json!([said("m", "msg_1"), said("m", "msg_1"), said("m", "msg_2"), said("m", "msg_1")])).await;
    let found: Vec<_> = found.as_array().unwrap().iter().collect();
    let entries: Vec<_> = found.iter().map(|item| (&item["id"], item["content"].as_array().unwrap().len())).collect();
    assert_eq!(entries, [(&json!("msg_1"), 2), (&json!("msg_2"), 1), (&json!("msg_1"), 1)]);
}

#[tokio::test]
async fn a_refused_request_is_asked_again_once_without_reasoning() {
    let asked = Asked::messages(json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [
            thought("m", encrypted("rs_1")),
            { "type": "provider", "provider": data("openai", "m", json!({ "type": "web_search_call", "id": "ws" })) },
            said("m", "msg_1"),
        ] },
        { "role": "user", "content": "b" },
    ]));
    for (status, message) in [
        (400, "The encrypted content gAAA could not be verified."),
        (400, "Encrypted content is not supported with this model."),
        (404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
        (400, "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'."),
    ] {
        let refused = json!({ "error": { "message": message, "type": "invalid_request_error", "code": null } });
        let sent = Sent::to([Played::json(status, &refused), Played::events(ANSWER)]);
        asked.of(&model("m", &sent), DeltaSink::none()).await.unwrap();
        let [first, second] = &sent.bodies()[..] else { panic!("{message}") };
        assert_eq!(first["input"].as_array().unwrap().len(), 5, "{message}");
        let expected = json!({ "type": "message", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": "t", "annotations": [] }] });
        assert_eq!((&second["input"][1], second["input"].as_array().unwrap().len()), (&expected, 3), "{message}");
        assert_eq!(second.get("include"), None);
    }
}

#[tokio::test]
async fn files_are_sent_if_the_provider_can_read_them() {
    let file = |kind: &str, url: &str, name: Option<&str>| {
        let mut part = json!({ "type": "file", "mediaType": kind, "url": url });
        if let Some(name) = name {
            part["name"] = name.into();
        }
        part
    };
    let png = || file("image/png", "data:image/png;base64,iVBORw==", Some("a.png"));
    let video = || file("video/mp4", "data:video/mp4;base64,AAAA", Some("c.mp4"));
    let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    let conversation = json!([
        { "role": "user", "content": [
            png(),
            file("image/webp", "https://a.example/a.webp", None),
            file("application/pdf", "data:application/pdf;base64,JVBERg==", Some("b.pdf")),
            file("application/pdf", "data:application/pdf;base64,JVBERg==", None),
            file("application/pdf", "https://a.example/b.pdf", Some("b.pdf")),
            file("text/csv", "data:text/csv;base64,YQ==", Some("t.csv")),
            file(docx, "data:application/x;base64,AA==", None),
            file("image/png", "file:///etc/passwd", None),
            video(),
        ] },
        { "role": "assistant", "content": [png(), call("1", None)] },
        result("1", json!({ "type": "content", "value": [
            { "type": "text", "text": "see" },
            png(),
            file("application/pdf", "data:application/pdf;base64,JVBERg==", None),
            video(),
        ] })),
    ]);
    let text = |text: &str| json!({ "type": "input_text", "text": text });
    let unread =
        |name: &str, kind: &str| format!("[A file{name} of the type {kind} is not shown: this model cannot read it.]");
    let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto" });
    let pdf =
        |name| json!({ "type": "input_file", "filename": name, "file_data": "data:application/pdf;base64,JVBERg==" });
    let expected = json!([
        { "type": "message", "role": "user", "content": [
            image,
            { "type": "input_image", "image_url": "https://a.example/a.webp", "detail": "auto" },
            pdf("b.pdf"),
            pdf("file.pdf"),
            { "type": "input_file", "file_url": "https://a.example/b.pdf" },
            { "type": "input_file", "filename": "t.csv", "file_data": "data:text/csv;base64,YQ==" },
            text(&unread("", docx)),
            text(&unread("", "image/png")),
            text(&unread(" `c.mp4`", "video/mp4")),
        ] },
        { "type": "message", "role": "assistant", "content": unread(" `a.png`", "image/png") },
        { "type": "function_call", "call_id": "1", "name": "weather__today", "arguments": "{\"a\":1}" },
        { "type": "function_call_output", "call_id": "1", "output": [
            text("see"), image, pdf("file.pdf"), text(&unread(" `c.mp4`", "video/mp4")),
        ] },
    ]);
    assert_eq!(input(conversation).await, expected);
}

#[tokio::test]
async fn options_become_members_and_the_providers_own_come_last() {
    let options = json!({
        "maxOutputTokens": 3000,
        "temperature": 0.5,
        "topP": 0.9,
        "reasoning": { "effort": "high", "summary": "detailed" },
        "toolChoice": { "tool": "weather__today" },
        "parallelToolCalls": false,
        "responseFormat": { "name": "answer", "schema": { "type": "object" }, "strict": false },
        "cache": "long",
        "provider": {
            "service_tier": "flex",
            "max_output_tokens": 4000,
            "prompt_cache_key": "mine",
            "text": { "verbosity": "low" },
            "include": ["web_search_call.action.sources"],
            "tools": [{ "type": "web_search" }],
        },
    });
    let mut body = body(Asked { tools: vec![weather()], ..Asked::default() }.options(options)).await;
    let tools: Vec<_> = body["tools"].as_array().unwrap().iter().map(|tool| tool["type"].clone()).collect();
    assert_eq!(tools, ["web_search", "function"]);
    let members = body.as_object_mut().unwrap();
    members.retain(|name, _| !["tools", "input", "model", "stream", "store"].contains(&name.as_str()));
    let expected = json!({
        "max_output_tokens": 4000,
        "temperature": 0.5,
        "top_p": 0.9,
        "reasoning": { "effort": "high", "summary": "detailed" },
        "tool_choice": { "type": "function", "name": "weather__today" },
        "parallel_tool_calls": false,
        "text": {
            "format": { "type": "json_schema", "name": "answer", "schema": { "type": "object" }, "strict": false },
            "verbosity": "low",
        },
        "prompt_cache_retention": "24h",
        "prompt_cache_key": "mine",
        "service_tier": "flex",
        "include": ["web_search_call.action.sources", "reasoning.encrypted_content"],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn choices_of_tools_have_their_words() {
    for (choice, expected) in
        [(json!("auto"), json!("auto")), (json!("none"), json!("none")), (json!("required"), json!("required"))]
    {
        let asked = Asked { tools: vec![weather()], ..Asked::default() }.options(json!({ "toolChoice": choice }));
        assert_eq!(body(asked).await["tool_choice"], expected);
        // Without tools, there is nothing to choose.
        if expected != "required" {
            let asked = Asked::default().options(json!({ "toolChoice": choice, "parallelToolCalls": true }));
            let body = body(asked).await;
            assert_eq!((body.get("tool_choice"), body.get("parallel_tool_calls")), (None, None));
        }
    }
}

#[tokio::test]
async fn schemas_are_enforced_where_the_provider_can() {
    fn closed(properties: Value, required: Value) -> Value {
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }
    let name = || json!({ "type": "string", "description": "A name." });
    let nested = closed(
        json!({ "a": { "type": "array", "items": closed(json!({ "b": name() }), json!(["b"])) } }),
        json!(["a"]),
    );
    for (schema, strict) in [
        (closed(json!({}), json!([])), true),
        (closed(json!({ "a": name(), "b": { "type": ["integer", "null"] } }), json!(["a", "b"])), true),
        (nested, true),
        (closed(json!({ "a": { "anyOf": [{ "$ref": "#/$defs/x" }, { "type": "null" }] } }), json!(["a"])), true),
        (closed(json!({ "a": name() }), json!([])), false),
        (closed(json!({ "a": {} }), json!(["a"])), false),
        (closed(json!({ "a": { "type": ["object", "null"] } }), json!(["a"])), false),
        (closed(json!({ "a": { "type": "integer", "format": "uint32" } }), json!(["a"])), false),
        (json!({ "type": "object", "properties": {} }), false),
        (json!({ "type": "object", "properties": { "a": name() }, "required": ["a"] }), false),
        (json!({ "anyOf": [closed(json!({}), json!([]))], "type": "object", "additionalProperties": false }), false),
        (json!(true), false),
    ] {
        let tool = ToolItem::new("weather__today").unwrap().parameters(schema.clone());
        let body = body(Asked { tools: vec![tool], ..Asked::default() }).await;
        assert_eq!(body["tools"][0]["strict"], strict, "{schema}");
        assert!(body["tools"][0]["parameters"]["properties"].is_object(), "{schema}");
    }
}

#[tokio::test]
async fn reasoning_is_what_the_model_can_do() {
    for (model, options, reasoning) in [
        ("m", json!({}), json!(null)),
        ("m", json!({ "effort": "none" }), json!({ "effort": "none" })),
        ("m", json!({ "effort": "minimal", "summary": "auto" }), json!({ "effort": "low", "summary": "auto" })),
        ("m", json!({ "effort": "medium", "summary": "off" }), json!({ "effort": "medium" })),
        ("m", json!({ "effort": "max" }), json!({ "effort": "xhigh" })),
        ("gpt-5.2", json!({ "effort": "max" }), json!({ "effort": "xhigh" })),
        ("gpt-5.1-codex-max", json!({ "effort": "max" }), json!({ "effort": "xhigh" })),
        ("gpt-5.1", json!({ "effort": "max" }), json!({ "effort": "high" })),
        ("gpt-5-mini", json!({ "effort": "max" }), json!({ "effort": "high" })),
        ("openai/gpt-5", json!({ "effort": "minimal" }), json!({ "effort": "minimal" })),
        (
            "o4-mini",
            json!({ "effort": "minimal", "summary": "concise" }),
            json!({ "effort": "low", "summary": "concise" }),
        ),
    ] {
        let body = body_of(model, Asked::default().options(json!({ "reasoning": options }))).await.unwrap();
        assert_eq!(body["reasoning"], reasoning, "{model} {options}");
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]), "{model}");
    }
    // What does not reason refuses every word about it.
    let options = json!({ "reasoning": { "effort": "none", "summary": "auto" } });
    let body = body_of("gpt-4.1-mini", Asked::default().options(options)).await.unwrap();
    assert_eq!((body.get("reasoning"), body.get("include")), (None, None));
}

#[tokio::test]
async fn options_that_cannot_be_honoured_are_refused_before_anything_is_sent() {
    for (model, options, option) in [
        ("m", json!({ "stop": ["END"] }), "stop"),
        ("m", json!({ "seed": 1 }), "seed"),
        ("m", json!({ "reasoning": { "budgetTokens": 2000 } }), "reasoning/budgetTokens"),
        ("gpt-4o", json!({ "reasoning": { "effort": "low" } }), "reasoning/effort"),
        ("gpt-5-mini", json!({ "reasoning": { "effort": "none" } }), "reasoning/effort"),
        ("o3", json!({ "reasoning": { "effort": "none" } }), "reasoning/effort"),
        ("m", json!({ "toolChoice": "required" }), "toolChoice"),
        ("m", json!({ "toolChoice": { "tool": "a__b" } }), "toolChoice"),
        ("m", json!({ "provider": { "input": [] } }), "provider/input"),
        ("m", json!({ "provider": { "store": true } }), "provider/store"),
        ("m", json!({ "provider": { "previous_response_id": "resp_1" } }), "provider/previous_response_id"),
    ] {
        let error = body_of(model, Asked::default().options(options.clone())).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::MODEL_OPTION, "{options}");
        assert_eq!(error.details()["option"], option, "{error}");
    }
}

/// Returns the error that ends a stream of these events.
async fn error_of(events: &[Value]) -> Error {
    ask(&model("m", &Sent::to([Played::events(&stream(events))]))).await.unwrap_err()
}

#[tokio::test]
async fn failures_in_a_stream_have_their_codes() {
    for (code, message, expected, retryable) in [
        ("server_error", "oops", "E_MODEL_OVERLOADED", true),
        ("rate_limit_exceeded", "Please try again in 2s.", "E_MODEL_RATE_LIMIT", true),
        ("insufficient_quota", "You exceeded your current quota.", "E_MODEL_QUOTA", false),
        ("context_length_exceeded", "Your input is too much.", "E_MODEL_CONTEXT_OVERFLOW", false),
        ("invalid_prompt", "Your input exceeds the context window of this model.", "E_MODEL_CONTEXT_OVERFLOW", false),
        ("invalid_prompt", "This prompt was flagged.", "E_MODEL_REQUEST", false),
        ("image_too_large", "The image is too large.", "E_MODEL_REQUEST", false),
        ("vector_store_timeout", "slow", "E_MODEL_OVERLOADED", true),
        ("code_of_tomorrow", "?", "E_MODEL_OVERLOADED", true),
    ] {
        let report = json!({ "code": code, "message": message });
        let nested = json!({ "type": code, "code": code, "message": message, "param": null });
        for event in [
            json!({ "type": "response.failed", "response": { "status": "failed", "error": report } }),
            json!({ "type": "error", "code": code, "message": message, "param": null, "sequence_number": 3 }),
            json!({ "type": "error", "error": nested, "sequence_number": 3 }),
            json!({ "error": nested }),
        ] {
            let error = error_of(std::slice::from_ref(&event)).await;
            assert_eq!((error.code().as_str(), error.is_retryable()), (expected, retryable), "{event}");
            assert!(error.message().contains(message), "{error}");
            assert_eq!(error.details()["providerCode"], code, "{event}");
        }
    }
    let silent = error_of(&[json!({ "type": "response.failed", "response": { "error": null } })]).await;
    assert_eq!(silent.code().as_str(), "E_MODEL_OVERLOADED");
}

#[tokio::test]
async fn failures_of_requests_have_their_codes() {
    for (status, kind, code, message, expected) in [
        (401, "invalid_request_error", json!("invalid_api_key"), "Incorrect API key provided.", "E_MODEL_AUTH"),
        (403, "invalid_request_error", json!(null), "Country not supported.", "E_MODEL_AUTH"),
        (429, "insufficient_quota", json!("insufficient_quota"), "You exceeded your quota.", "E_MODEL_QUOTA"),
        (429, "tokens", json!("rate_limit_exceeded"), "Rate limit reached for m.", "E_MODEL_RATE_LIMIT"),
        (400, "invalid_request_error", json!("context_length_exceeded"), "Too long.", "E_MODEL_CONTEXT_OVERFLOW"),
        (404, "invalid_request_error", json!("model_not_found"), "The model `m` does not exist.", "E_MODEL_REQUEST"),
        (400, "invalid_request_error", json!("unsupported_parameter"), "Unsupported parameter.", "E_MODEL_REQUEST"),
        (500, "server_error", json!(null), "The server had an error.", "E_MODEL_OVERLOADED"),
    ] {
        let report = json!({ "error": { "message": message, "type": kind, "param": null, "code": code } });
        let sent = Sent::to([Played::json(status, &report).header("x-request-id", "req_1")]);
        let error = ask(&model("m", &sent)).await.unwrap_err();
        assert_eq!(error.code().as_str(), expected, "{report}");
        assert_eq!(error.details()["requestId"], "req_1");
        assert!(error.message().contains(message), "{error}");
    }
}

#[tokio::test]
async fn streams_of_other_servers_are_read() {
    let message = json!({ "type": "message", "content": [{ "type": "output_text", "text": "Hello there." }] });
    let added = json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "message" } });
    let piece =
        json!({ "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hello" });
    let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": message });
    let end = |output: Value| json!({ "type": "response.completed", "response": { "output": output, "usage": null } });
    for events in [
        // Without ids, and once more in the end.
        vec![added.clone(), piece.clone(), done.clone(), end(json!([message]))],
        // Without the items in the end.
        vec![added.clone(), piece.clone(), done.clone(), end(json!(null))],
        // With other items in the end.
        vec![added.clone(), piece.clone(), done.clone(), end(json!([{ "type": "reasoning", "id": "rs_1" }, message]))],
        // With a place in the stream for an item that is kept back.
        vec![json!({ "type": "response.output_item.done", "output_index": 1, "item": message }), end(json!([message]))],
        // With nothing but the end.
        vec![end(json!([message]))],
        // With events and items in forms that do not exist yet.
        vec![
            json!({}),
            json!({ "type": "response.of_tomorrow", "delta": { "a": 1 }, "output_index": "x" }),
            json!({ "type": "response.output_text.annotation.added", "annotation": 7 }),
            json!({ "type": "response.function_call_arguments.delta", "output_index": 7, "delta": "{" }),
            done.clone(),
            end(json!([null, 1])),
        ],
    ] {
        let sent = Sent::to([Played::events(&format!("data: [DONE]\n\n{}", stream(&events)))]);
        let answer = ask(&model("m", &sent)).await.unwrap();
        assert_eq!(answer.to_text(), "Hello there.", "{events:?}");
    }
    let unreadable = json!({ "type": "response.output_text.delta", "output_index": "x", "delta": "a" });
    assert_eq!(*error_of(&[unreadable]).await.code(), ErrorCode::MODEL_ANSWER);
}

#[tokio::test]
async fn a_call_id_that_is_taken_or_empty_is_replaced_before_watchers_see_it() {
    fn item(id: &str) -> Value {
        json!({ "type": "function_call", "id": "fc", "call_id": id, "name": "weather__today", "arguments": "{}" })
    }
    fn added((index, id): (usize, &&str)) -> Value {
        json!({ "type": "response.output_item.added", "output_index": index, "item": item(id) })
    }
    let ids = ["1", "2", "2", ""];
    let mut events: Vec<_> = ids.iter().enumerate().map(added).collect();
    let output: Vec<_> = ids.iter().map(|id| item(id)).collect();
    events.push(json!({ "type": "response.completed", "response": { "output": output } }));
    let sent = Sent::to([Played::events(&stream(&events))]);
    let conversation = json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [call("1", None)] },
        result("1", text("one")),
    ]);
    let (answer, told) = told(&model("m", &sent), &Asked::messages(conversation)).await;
    let answer = answer.unwrap();
    let ids: Vec<_> = answer.calls().map(|call| call.tool_call_id.as_str()).collect();
    let told: Vec<_> = told.iter().filter(|line| line.contains("call")).collect();
    let expected: Vec<_> =
        ids.iter().enumerate().map(|(part, id)| format!("{part} call {id} weather__today")).collect();
    assert_eq!(told, expected.iter().collect::<Vec<_>>());
    assert_eq!(ids[1], "2");
    let unique: BTreeSet<_> = ids.iter().copied().chain(["1", ""]).collect();
    assert_eq!(unique.len(), 6, "{ids:?}");
    assert!(answer.content.iter().all(|part| json!(part)["provider"]["rest"]["id"] == "fc"));
}

#[tokio::test]
async fn arguments_go_back_as_the_model_wrote_them_unless_they_were_changed() {
    let rest = || Some(data("openai", "m", json!({ "id": "fc", "arguments": "{ \"a\": 1.0 }" })));
    let mut written = call("1", rest());
    written["input"] = json!({ "a": 1.0 });
    let mut changed = call("2", rest());
    changed["input"] = json!({ "a": 2 });
    let mut malformed = call("3", None);
    malformed["input"] = json!("{\"a\": ");
    let found = items(json!([written, changed, malformed])).await;
    let arguments: Vec<_> = found.as_array().unwrap().iter().map(|item| item["arguments"].clone()).collect();
    assert_eq!(arguments, ["{ \"a\": 1.0 }", "{\"a\":2}", "{\"a\": "]);
}

#[tokio::test]
async fn a_server_gets_the_key_and_may_send_an_answer_in_any_form() {
    let answer = stream(&[json!({ "type": "response.completed", "response": { "output": [
        { "type": "message", "content": [{ "type": "output_text", "text": "Hello there." }] },
    ] } })]);
    let whole = || Reply::events(&answer).header("x-request-id", "req_7");
    for reply in [whole(), whole().in_pieces(1), whole().with_crlf().in_pieces(1)] {
        let server = Server::start([reply]).await;
        let answer = ask(&config(server.url()).model(&providers::OPENAI, Responses).unwrap()).await.unwrap();
        assert_eq!((&*answer.to_text(), answer.request_id.as_deref()), ("Hello there.", Some("req_7")));
        let request = server.requests().remove(0);
        assert_eq!(request.path, "/responses");
        assert_eq!(request.header("authorization"), Some("Bearer key-for-tests-4711"));
    }
}

/// llama.cpp, and servers around it, send no `output_index`.
#[tokio::test]
async fn items_without_an_index_are_found_by_their_ids() {
    for recording in Recording::all("responses") {
        let line = |line: &str| match line.strip_prefix("data: ") {
            Some(json) => {
                let mut event: Value = serde_json::from_str(json).unwrap();
                event.as_object_mut().unwrap().remove("output_index");
                format!("data: {event}\n")
            }
            None => format!("{line}\n"),
        };
        let stream: String = recording.stream().lines().map(line).collect();
        let answer = ask(&model("m", &Sent::to([Played::events(&stream)]))).await.unwrap();
        assert_eq!(json!(answer), recording.expected["response"], "{}", recording.name);
    }
}
