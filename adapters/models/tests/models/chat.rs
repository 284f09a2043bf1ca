//! Chat completions: what requests carry in each dialect, and what becomes of answers and failures.

use std::collections::HashSet;

use goondan_core::{ErrorCode, ModelFinish, ToolItem, ToolName};
use goondan_covers::covers;
use goondan_models::wire::{Chat, Dialect};
use goondan_models::{HttpModel, ModelConfig, providers};
use goondan_runtime::DeltaSink;
use serde_json::{Value, json};

use crate::support::{
    Asked, Played, Reply, Sent, Server, Step, ask, config, requests_are_as_written_down, sent_body, told,
};

const ANSWER: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\n";

fn model(config: ModelConfig, dialect: Dialect) -> goondan_core::Result<HttpModel<Chat>> {
    config.model(&providers::chat(&dialect), Chat::new(dialect))
}

fn played(dialect: Dialect, responses: impl IntoIterator<Item = Played>) -> (HttpModel<Chat>, Sent) {
    let sent = Sent::to(responses);
    (model(config("http://127.0.0.1:9"), dialect).unwrap().with_transport(sent.clone()), sent)
}

fn dialect(name: &str) -> Dialect {
    Dialect::ALL.into_iter().find(|dialect| dialect.name == name).unwrap()
}

async fn body_of(name: &str, dialect: Dialect, asked: Asked) -> goondan_core::Result<Value> {
    sent_body(&providers::chat(&dialect), Chat::new(dialect), name, ANSWER, asked).await
}

async fn messages(dialect: Dialect, messages: Value) -> Vec<Value> {
    let mut body = body_of("m", dialect, Asked::messages(messages)).await.unwrap();
    serde_json::from_value(body["messages"].take()).unwrap()
}

/// Returns a stream of chunks with these pieces.
fn stream(deltas: impl IntoIterator<Item = Value>, finish: &str) -> String {
    let chunk = |delta: Value| format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }));
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] });
    deltas.into_iter().map(chunk).collect::<String>() + &format!("data: {end}\n\ndata: [DONE]\n\n")
}

#[tokio::test]
async fn bodies_are_as_written_down() {
    let body = async |case: &Value, asked| body_of("m", dialect(case["dialect"].as_str().unwrap()), asked).await;
    requests_are_as_written_down("chat", body).await;
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn each_dialect_writes_an_option_in_its_way_or_refuses_it() {
    let ways: &[(&str, Value, Result<Value, &str>)] = &[
        ("openai-compatible", json!({ "maxOutputTokens": 5 }), Ok(json!({ "max_tokens": 5 }))),
        ("openrouter", json!({ "maxOutputTokens": 5 }), Ok(json!({ "max_tokens": 5 }))),
        ("ollama", json!({ "maxOutputTokens": 5 }), Ok(json!({ "max_tokens": 5 }))),
        ("lmstudio", json!({ "maxOutputTokens": 5 }), Ok(json!({ "max_tokens": 5 }))),
        ("mistral", json!({ "maxOutputTokens": 5 }), Ok(json!({ "max_tokens": 5 }))),
        ("groq", json!({ "maxOutputTokens": 5 }), Ok(json!({ "max_completion_tokens": 5 }))),
        ("vllm", json!({ "maxOutputTokens": 5 }), Ok(json!({ "max_completion_tokens": 5 }))),
        ("openai-compatible", json!({ "seed": 1 }), Ok(json!({ "seed": 1 }))),
        ("mistral", json!({ "seed": 1 }), Ok(json!({ "random_seed": 1 }))),
        ("deepseek", json!({ "seed": 1 }), Err("seed")),
        ("openai-compatible", json!({ "reasoning": { "effort": "none" } }), Ok(json!({ "reasoning_effort": "none" }))),
        (
            "openai-compatible",
            json!({ "reasoning": { "effort": "minimal" } }),
            Ok(json!({ "reasoning_effort": "minimal" })),
        ),
        ("ollama", json!({ "reasoning": { "effort": "minimal" } }), Ok(json!({ "reasoning_effort": "low" }))),
        ("groq", json!({ "reasoning": { "effort": "medium" } }), Ok(json!({ "reasoning_effort": "medium" }))),
        ("xai", json!({ "reasoning": { "effort": "max" } }), Ok(json!({ "reasoning_effort": "high" }))),
        ("mistral", json!({ "reasoning": { "effort": "high" } }), Ok(json!({ "reasoning_effort": "high" }))),
        ("mistral", json!({ "reasoning": { "effort": "low" } }), Err("reasoning/effort")),
        ("lmstudio", json!({ "reasoning": { "effort": "none" } }), Err("reasoning/effort")),
        ("deepseek", json!({ "reasoning": { "effort": "none" } }), Ok(json!({ "thinking": { "type": "disabled" } }))),
        (
            "deepseek",
            json!({ "reasoning": { "effort": "medium" } }),
            Ok(json!({ "thinking": { "type": "enabled" }, "reasoning_effort": "high" })),
        ),
        (
            "openrouter",
            json!({ "reasoning": { "effort": "high", "summary": "detailed" } }),
            Ok(json!({ "reasoning": { "effort": "high", "summary": "detailed" } })),
        ),
        (
            "openrouter",
            json!({ "reasoning": { "budgetTokens": 9, "summary": "auto" } }),
            Ok(json!({ "reasoning": { "max_tokens": 9, "summary": "auto" } })),
        ),
        ("groq", json!({ "reasoning": { "budgetTokens": 9 } }), Err("reasoning/budgetTokens")),
        ("vllm", json!({ "reasoning": { "summary": "concise" } }), Err("reasoning/summary")),
        ("vllm", json!({ "reasoning": { "summary": "auto" } }), Ok(json!({}))),
        ("openai-compatible", json!({ "toolChoice": "required" }), Ok(json!({ "tool_choice": "required" }))),
        ("openai-compatible", json!({ "toolChoice": "none" }), Ok(json!({ "tool_choice": "none" }))),
        ("openai-compatible", json!({ "toolChoice": { "tool": "other__one" } }), Err("toolChoice")),
        ("lmstudio", json!({ "toolChoice": "required" }), Ok(json!({ "tool_choice": "required" }))),
        ("lmstudio", json!({ "toolChoice": { "tool": "clock__now" } }), Err("toolChoice")),
        ("ollama", json!({ "toolChoice": "auto" }), Ok(json!({}))),
        ("ollama", json!({ "toolChoice": "none" }), Err("toolChoice")),
        ("ollama", json!({ "parallelToolCalls": false }), Err("parallelToolCalls")),
        ("ollama", json!({ "parallelToolCalls": true }), Ok(json!({}))),
        ("groq", json!({ "parallelToolCalls": false }), Ok(json!({ "parallel_tool_calls": false }))),
        ("deepseek", json!({ "responseFormat": { "name": "a", "schema": {} } }), Err("responseFormat")),
        ("openai-compatible", json!({ "cache": "auto" }), Ok(json!({}))),
        ("openrouter", json!({ "provider": { "messages": [] } }), Err("provider/messages")),
        ("xai", json!({ "provider": { "search": { "on": true } } }), Ok(json!({ "search": { "on": true } }))),
    ];
    for (name, options, expected) in ways {
        let clock = ToolItem::new("clock__now").unwrap();
        let asked = Asked { tools: vec![clock], ..Asked::default() }.options(options.clone());
        let body = body_of("m", dialect(name), asked).await.map(|mut body| {
            let members = body.as_object_mut().unwrap();
            members.retain(|name, _| !["model", "stream", "stream_options", "messages", "tools"].contains(&&**name));
            body
        });
        match (body, expected) {
            (Ok(body), Ok(expected)) => assert_eq!(body, *expected, "{name} {options}"),
            (Err(error), Err(option)) => {
                assert_eq!(*error.code(), ErrorCode::MODEL_OPTION);
                assert_eq!(error.details()["option"], *option, "{name} {options}");
                assert!(error.message().contains(option) && error.suggestion().is_some(), "{error}");
            }
            (body, expected) => panic!("{name} {options}: {body:?} instead of {expected:?}"),
        }
    }
}

#[tokio::test]
async fn counts_are_asked_for_and_the_cache_is_where_that_is_needed() {
    let body =
        |model, name, cache: &str| body_of(model, dialect(name), Asked::default().options(json!({ "cache": cache })));
    assert_eq!(body("m", "groq", "auto").await.unwrap()["stream_options"], json!({ "include_usage": true }));
    assert_eq!(body("m", "mistral", "auto").await.unwrap().get("stream_options"), None);
    let mark = |ttl: Option<&str>| match ttl {
        Some(ttl) => json!({ "type": "ephemeral", "ttl": ttl }),
        None => json!({ "type": "ephemeral" }),
    };
    assert_eq!(body("anthropic/m", "openrouter", "auto").await.unwrap()["cache_control"], mark(None));
    assert_eq!(body("anthropic/m", "openrouter", "long").await.unwrap()["cache_control"], mark(Some("1h")));
    for (model, name, cache) in
        [("anthropic/m", "openrouter", "off"), ("m", "openrouter", "long"), ("m", "xai", "long")]
    {
        assert_eq!(body(model, name, cache).await.unwrap().get("cache_control"), None);
    }
}

#[tokio::test]
async fn choices_of_tools_are_left_out_or_refused_where_there_are_no_tools() {
    let body = |choice: Value| {
        let options = json!({ "toolChoice": choice, "parallelToolCalls": false });
        body_of("m", Dialect::OPENAI_COMPATIBLE, Asked::default().options(options))
    };
    for choice in ["auto", "none"] {
        let body = body(json!(choice)).await.unwrap();
        assert_eq!((body.get("tool_choice"), body.get("parallel_tool_calls")), (None, None));
    }
    for choice in [json!("required"), json!({ "tool": ToolName::new("clock__now").unwrap() })] {
        assert_eq!(*body(choice).await.unwrap_err().code(), ErrorCode::MODEL_OPTION);
    }
}

#[test]
fn dialects_have_names_and_addresses() {
    let names: HashSet<_> = Dialect::ALL.iter().map(|dialect| dialect.name).collect();
    assert_eq!(names.len(), Dialect::ALL.len());
    for dialect in Dialect::ALL {
        let local = dialect.base_url.is_none_or(|url| url.starts_with("http://localhost:"));
        assert_eq!(dialect.needs_key, !local, "{}", dialect.name);
        let own = model(ModelConfig::new("m"), dialect);
        assert_eq!(own.is_err(), dialect.base_url.is_none(), "{}", dialect.name);
    }
}

/// Returns the messages of a conversation with one call for each id, and its result.
fn called(ids: &[&str]) -> Value {
    let mut messages = vec![json!({ "role": "user", "content": "?" })];
    for id in ids {
        messages.push(json!({ "role": "assistant", "content": [
            { "type": "tool-call", "toolCallId": id, "toolName": "t", "input": {} },
        ] }));
        messages.push(json!({ "role": "tool", "content": [
            { "type": "tool-result", "toolCallId": id, "toolName": "t", "output": { "type": "text", "value": "done" } },
        ] }));
    }
    messages.into()
}

#[tokio::test]
async fn ids_of_other_providers_are_made_legal() {
    let long = "x".repeat(41);
    let ids = ["call_0fypS1hVX", "toolu_1", "aB3xK9mP2", &long];
    for (dialect, legal) in [
        (
            Dialect::MISTRAL,
            (|id: &str| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())) as fn(&str) -> bool,
        ),
        (Dialect::GROQ, |id| id.len() <= 40),
    ] {
        let messages = messages(dialect, called(&ids)).await;
        let mut seen = HashSet::new();
        for pair in messages[1..].chunks(2) {
            let id = pair[0]["tool_calls"][0]["id"].as_str().unwrap();
            assert_eq!(pair[1]["tool_call_id"], *id);
            assert!(legal(id) && seen.insert(id), "{id}");
        }
        assert!(seen.contains("aB3xK9mP2"), "a legal id is kept");
    }
}

#[tokio::test]
async fn ids_that_are_missing_or_repeated_are_replaced_and_the_provider_gets_its_own_back() {
    let call = |id: &str| json!({ "id": id, "function": { "name": "t", "arguments": "{}" } });
    let played_stream = stream([json!({ "tool_calls": [call("call_0"), call(""), call("new"), call("new")] })], "stop");
    let (model, sent) = played(Dialect::OPENAI_COMPATIBLE, [Played::events(&played_stream)]);
    let (answer, told) = told(&model, &Asked::messages(called(&["call_0"]))).await;
    let answer = answer.unwrap();
    assert_eq!(answer.finish_reason, Some(ModelFinish::ToolCalls));
    let ids: Vec<_> = answer.calls().map(|call| call.tool_call_id.to_string()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 4, "{ids:?}");
    assert!(ids[0] != "call_0" && !ids[1].is_empty() && ids[2] == "new", "{ids:?}");
    for id in &ids {
        assert!(told.iter().any(|told| told.contains(&format!("call {id} t"))), "{told:?}");
    }

    let mut messages: Vec<Value> = serde_json::from_value(called(&["call_0"])).unwrap();
    messages.push(json!({ "role": "assistant", "content": answer.content }));
    messages.extend(ids.iter().map(|id| {
        let output = json!({ "type": "text", "value": "done" });
        json!({ "role": "tool", "content": [
            { "type": "tool-result", "toolCallId": id, "toolName": "t", "output": output },
        ] })
    }));
    Asked::messages(messages.into()).of(&model, DeltaSink::none()).await.unwrap();
    let next = &sent.bodies()[1]["messages"];
    let calls: Vec<_> = (0..4).map(|index| next[3]["tool_calls"][index]["id"].as_str().unwrap()).collect();
    // Two calls of one answer must differ, so the second `new` keeps its new id.
    assert_eq!(calls, ["call_0", &ids[1], "new", &ids[3]]);
    let results: Vec<_> = (4..8).map(|index| next[index]["tool_call_id"].as_str().unwrap()).collect();
    assert_eq!(results, calls);
}

#[tokio::test]
async fn a_call_with_cut_arguments_keeps_their_text() {
    let call = json!({ "index": 0, "id": "a", "function": { "name": "t", "arguments": "{\"n\": 1" } });
    let played_stream = stream([json!({ "tool_calls": [call] })], "length");
    let (model, _) = played(Dialect::OPENAI_COMPATIBLE, [Played::events(&played_stream)]);
    let answer = ask(&model).await.unwrap();
    assert_eq!(answer.finish_reason, Some(ModelFinish::Length));
    assert_eq!(answer.calls().next().unwrap().input, json!("{\"n\": 1"));
}

#[tokio::test]
async fn done_without_a_reason_is_an_answer_that_was_cut_off() {
    let cut = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: [DONE]\n\n";
    let mut config = config("http://127.0.0.1:9");
    config.retries.max = 2;
    let sent = Sent::to([Played::events(cut), Played::events(ANSWER)]);
    let model = model(config, Dialect::VLLM).unwrap().with_transport(sent.clone());
    let (answer, told) = told(&model, &Asked::default()).await;
    assert_eq!(answer.unwrap().to_text(), "Hello.");
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[1].starts_with("restart "), "{told:?}");
}

/// A piece of a message, from a server that never says why an answer ends.
fn bare(delta: &Value) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "delta": delta }] }))
}

#[tokio::test]
async fn a_whole_answer_may_end_without_a_reason() {
    let text = bare(&json!({ "content": "Hello." }));
    let call = |arguments: &str| {
        let function = json!({ "name": "t", "arguments": arguments });
        bare(&json!({ "tool_calls": [{ "index": 0, "id": "a", "function": function }] }))
    };
    let thought = bare(&json!({ "reasoning": "hm" }));
    let pending = "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"},\"finish_reason\":null}]}\n\n".to_owned();
    let counts = "data: {\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n";
    let done = "data: [DONE]\n\n";
    for (said, end, is_whole) in [
        (&text, format!("{counts}{done}"), true),
        (&text, counts.to_owned(), true),
        (&call("{}"), counts.to_owned(), true),
        (&pending, format!("{counts}{done}"), true),
        // It says reasons, so this one is missing.
        (&pending, counts.to_owned(), false),
        (&text, done.to_owned(), false),
        (&text, String::new(), false),
        (&call("{\"n\": "), format!("{counts}{done}"), false),
        (&thought, format!("{counts}{done}"), false),
    ] {
        let (model, _) = played(Dialect::OPENAI_COMPATIBLE, [Played::events(&format!("{said}{end}"))]);
        match ask(&model).await {
            Ok(answer) => assert!(is_whole && answer.finish_reason == Some(ModelFinish::Unknown), "{said}{end}"),
            Err(error) => assert!(!is_whole && error.code() == "E_MODEL_NETWORK", "{said}{end}: {error}"),
        }
    }
    // A connection that breaks is no end.
    let broken = Played::events(&format!("{text}{counts}")).then(Step::Break);
    let (model, _) = played(Dialect::OPENAI_COMPATIBLE, [broken]);
    assert_eq!(ask(&model).await.unwrap_err().code(), "E_MODEL_NETWORK");
}

#[tokio::test]
async fn no_arguments_are_an_empty_object() {
    for arguments in ["", "null", " null\n", "{}"] {
        let call = json!({ "index": 0, "id": "a", "function": { "name": "t", "arguments": arguments } });
        let played_stream = stream([json!({ "tool_calls": [call] })], "tool_calls");
        let (model, _) = played(Dialect::GROQ, [Played::events(&played_stream)]);
        let answer = ask(&model).await.unwrap();
        assert_eq!(answer.calls().next().unwrap().input, json!({}), "{arguments:?}");
    }
}

#[tokio::test]
async fn failures_inside_of_a_stream_have_their_codes() {
    let chunk = json!({ "choices": [{ "delta": { "content": "Hel" } }] });
    for (report, expected) in [
        (json!({ "error": { "message": "The server had an error", "type": "server_error" } }), "E_MODEL_OVERLOADED"),
        (
            json!({ "error": { "code": 502, "message": "Upstream" },
                "choices": [{ "delta": {}, "finish_reason": "error" }] }),
            "E_MODEL_OVERLOADED",
        ),
        (json!({ "error": { "code": 429, "message": "Rate limit exceeded" } }), "E_MODEL_RATE_LIMIT"),
        (json!({ "error": "model runner has stopped" }), "E_MODEL_OVERLOADED"),
        (json!({ "object": "error", "message": "bad", "type": "BadRequestError", "code": 400 }), "E_MODEL_REQUEST"),
        (json!({ "choices": [{ "error": { "code": 402, "message": "no credits" } }] }), "E_MODEL_QUOTA"),
        (json!({ "choices": [{ "delta": {}, "finish_reason": "error" }] }), "E_MODEL_OVERLOADED"),
        (json!({ "choices": [{ "finish_reason": "insufficient_system_resource" }] }), "E_MODEL_OVERLOADED"),
        (
            json!({ "error": { "message": "cannot parse the call", "type": "invalid_request_error",
                "code": "tool_use_failed" } }),
            "E_MODEL_ANSWER",
        ),
        (json!("no chunk"), "E_MODEL_ANSWER"),
    ] {
        let events = format!("data: {chunk}\n\ndata: {report}\n\n");
        let (model, _) = played(Dialect::OPENROUTER, [Played::events(&events)]);
        let error = ask(&model).await.unwrap_err();
        assert_eq!(error.code().as_str(), expected, "{report}: {error}");
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn failures_of_each_provider_have_their_codes() {
    let raw = json!({ "object": "error", "message": "Unexpected role", "type": "invalid_request_message_order" });
    for (status, body, expected, message) in [
        (401, json!({ "error": { "message": "Incorrect API key", "code": "invalid_api_key" } }), "E_MODEL_AUTH", "key"),
        (400, json!({ "code": "invalid", "error": "Incorrect API key provided: xx***yy." }), "E_MODEL_AUTH", "key"),
        (
            429,
            json!({ "code": "exhausted", "error": "Your team has used all available credits." }),
            "E_MODEL_QUOTA",
            "credits",
        ),
        (402, json!({ "error": { "message": "Insufficient Balance", "type": "unknown_error" } }), "E_MODEL_QUOTA", ""),
        (
            400,
            json!({ "error": { "message": "flagged", "code": "content_filter", "status": 400 } }),
            "E_MODEL_REFUSED",
            "flagged",
        ),
        (
            403,
            json!({ "error": { "code": 403, "message": "Flagged",
                "metadata": { "reasons": ["x"], "flagged_input": "y" } } }),
            "E_MODEL_REFUSED",
            "Flagged",
        ),
        (
            400,
            json!({ "error": { "code": 400, "message": "Provider returned error",
                "metadata": { "provider_name": "Mistral", "raw": raw.to_string() } } }),
            "E_MODEL_REQUEST",
            "Provider returned error: Mistral: Unexpected role",
        ),
        (
            400,
            json!({ "error": { "code": 400, "message": "Provider returned error",
                "metadata": { "provider_name": "Example",
                    "raw": { "error": "the request exceeds the available context size" } } } }),
            "E_MODEL_CONTEXT_OVERFLOW",
            "Example",
        ),
        (
            429,
            json!({ "error": { "code": 429, "message": "Provider returned error",
                "metadata": { "provider_name": "Example", "raw": "busy, try again" } } }),
            "E_MODEL_RATE_LIMIT",
            "Example: busy, try again",
        ),
        (
            404,
            json!({ "object": "error", "message": "The model `x` does not exist.", "type": "NotFoundError",
                "code": 404 }),
            "E_MODEL_REQUEST",
            "does not exist",
        ),
        (
            422,
            json!({ "object": "error", "message": { "detail": [{ "type": "missing" }] } }),
            "E_MODEL_REQUEST",
            "missing",
        ),
        (
            413,
            json!({ "error": { "message": "Request too large", "code": "rate_limit_exceeded" } }),
            "E_MODEL_CONTEXT_OVERFLOW",
            "",
        ),
        (
            400,
            json!({ "error": { "message": "no such call", "code": "tool_use_failed" } }),
            "E_MODEL_ANSWER",
            "no such call",
        ),
        (
            503,
            json!({ "error": { "message": "Service is too busy", "type": "service_unavailable" } }),
            "E_MODEL_OVERLOADED",
            "",
        ),
    ] {
        let (model, _) = played(Dialect::OPENROUTER, [Played::json(status, &body)]);
        let error = ask(&model).await.unwrap_err();
        assert_eq!(error.code().as_str(), expected, "{body}: {error}");
        assert!(error.message().starts_with("openrouter: ") && error.message().contains(message), "{error}");
    }
}

#[tokio::test]
async fn each_phrase_for_a_request_that_is_too_long_is_known() {
    for phrase in [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "This endpoint's maximum context length is 8192 tokens.",
        "Prompt contains 9000 tokens, too large for model with 8192 maximum context length",
        "This model's maximum prompt length is 8192 but the request contains 9000 tokens.",
        "Please reduce the length of the messages or completion.",
        "the request exceeds the available context size, try increasing it",
        "Requested tokens (9000) exceed context window of 8192",
        "The number of tokens to keep is greater than the context length of the model",
        "Trying to keep the first 9000 tokens when context the overflows.",
        "the input length exceeds context length",
        "prompt too long; exceeded max context length by 4 tokens",
        "Input is too long for requested model.",
        "Your input exceeds the context window of this model.",
        "`inputs` tokens + `max_new_tokens` must be <= 8192.",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "Your request exceeded model token limit: 8192 (requested: 9000)",
        "Prompt exceeds max length",
        "invalid params, context window exceeds limit",
        "prompt token count of 9000 exceeds the limit of 8192",
    ] {
        let report = json!({ "error": { "message": phrase, "type": "invalid_request_error" } });
        for response in [Played::json(400, &report), Played::events(&format!("data: {report}\n\n"))] {
            let (model, _) = played(Dialect::OPENAI_COMPATIBLE, [response]);
            let error = ask(&model).await.unwrap_err();
            assert_eq!(*error.code(), ErrorCode::MODEL_CONTEXT_OVERFLOW, "{phrase}");
            assert!(!error.is_retryable());
        }
    }
}

#[tokio::test]
async fn reasoning_that_the_provider_refuses_is_left_out() {
    let refused =
        json!({ "error": { "message": "unknown property `reasoning_content`", "type": "invalid_request_error" } });
    let (model, sent) = played(Dialect::DEEPSEEK, [Played::json(400, &refused), Played::events(ANSWER)]);
    let mut messages = called(&["a"]);
    let reasoning = json!({
        "type": "reasoning", "text": "Hm.",
        "provider": { "api": "openai-chat", "model": "m", "rest": { "type": "reasoning_content" } },
    });
    messages[1]["content"].as_array_mut().unwrap().insert(0, reasoning);
    assert_eq!(Asked::messages(messages).of(&model, DeltaSink::none()).await.unwrap().to_text(), "Hello.");
    let sent = sent.bodies();
    assert_eq!(sent[0]["messages"][1]["reasoning_content"], "Hm.");
    assert_eq!(sent[1]["messages"][1].get("reasoning_content"), None);
}

#[tokio::test]
async fn an_answer_arrives_over_http() {
    let events = stream([json!({ "content": "Hel" }), json!({ "content": "lo." })], "stop");
    let counts = json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 } });
    let events = events.replace("data: [DONE]", &format!(": a comment\n\ndata: {counts}\n\ndata: [DONE]"));
    let replies = [
        Reply::events(&events),
        Reply::events(&events).with_crlf().in_pieces(1),
        Reply::events(&events).cut(40).closed(),
        Reply::events(&events).in_pieces(7),
        Reply::new("404 Not Found", "404 page not found").header("content-type", "text/plain"),
    ];
    let server = Server::start(replies).await;
    let mut config = config(&format!("{}/v1/", server.url()));
    config.retries.max = 2;
    let model = model(config, Dialect::GROQ).unwrap();
    for _ in 0..3 {
        let answer = ask(&model).await.unwrap();
        assert_eq!((&*answer.to_text(), answer.usage.unwrap().total_tokens), ("Hello.", 5));
    }
    let error = ask(&model).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_REQUEST);
    assert!(error.message().contains("404 page not found"), "{error}");
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert_eq!(requests[0].header("authorization"), Some("Bearer key-for-tests-4711"));
    assert_eq!(server.connections(), 2, "connections are used again, except for the one that was closed");
}

#[tokio::test]
async fn a_key_is_sent_if_there_is_one_and_missed_where_it_is_needed() {
    let server = Server::start([Reply::events(ANSWER)]).await;
    let without = |dialect| {
        let mut config = config(server.url());
        config.api_key = None;
        model(config, dialect).unwrap()
    };
    ask(&without(Dialect::OLLAMA)).await.unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
    let error = ask(&without(Dialect::MISTRAL)).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_AUTH);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
#[covers("MODEL-01")]
async fn blocks_of_reasoning_go_back_as_they_came() {
    let thinking = |elements: Value| json!({ "type": "thinking", "thinking": elements });
    let said = |text: &str| json!({ "type": "text", "text": text });
    let reference = json!({ "type": "reference", "reference_ids": [1] });
    let deltas = [
        json!({ "content": [thinking(json!([said("Hm, ")]))] }),
        json!({ "content": [thinking(json!([said("yes."), reference]))] }),
        json!({ "content": [said("It is")] }),
        json!({ "content": " so." }),
        json!({ "content": [thinking("Or not?".into())] }),
        json!({ "content": [said("Perhaps.")] }),
    ];
    let (model, sent) = played(Dialect::MISTRAL, [Played::events(&stream(deltas, "stop"))]);
    let answer = ask(&model).await.unwrap();
    let messages = json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": answer.content },
        { "role": "user", "content": "b" },
    ]);
    Asked::messages(messages).of(&model, DeltaSink::none()).await.unwrap();
    let expected = json!([
        thinking(json!([said("Hm, yes."), reference])),
        said("It is so."),
        thinking(json!([said("Or not?")])),
        said("Perhaps."),
    ]);
    assert_eq!(sent.bodies()[1]["messages"][1]["content"], expected);
}

#[tokio::test]
async fn a_message_with_calls_alone_has_an_empty_text_where_the_provider_wants_one() {
    let call = json!({ "type": "tool-call", "toolCallId": "a", "toolName": "t", "input": {} });
    let output = json!({ "type": "text", "value": "done" });
    let result = json!({ "type": "tool-result", "toolCallId": "a", "toolName": "t", "output": output });
    let conversation = json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [call] },
        { "role": "tool", "content": [result] },
    ]);
    for (dialect, content) in [(Dialect::XAI, json!("")), (Dialect::OPENAI_COMPATIBLE, Value::Null)] {
        assert_eq!(messages(dialect, conversation.clone()).await[1]["content"], content, "{}", dialect.name);
    }
}

#[tokio::test]
async fn a_call_after_the_reason_to_stop_is_no_part_of_the_answer() {
    let call = |index: Option<u64>, id: &str, arguments: &str| {
        let function = json!({ "name": "weather__today", "arguments": arguments });
        json!({ "tool_calls": [{ "index": index, "id": id, "function": function }] })
    };
    let late = |index| {
        let rest = json!({ "tool_calls": [{ "index": index, "function": { "arguments": "1}" } }] });
        stream([call(index, "late", "{\"late\":"), rest], "tool_calls")
    };
    let text = || json!({ "content": "Hello." });
    for (before, finish, expected) in [
        (vec![text()], "stop", (Some(ModelFinish::Stop), "Hello.", 0)),
        (vec![text(), call(None, "early", "{}")], "tool_calls", (Some(ModelFinish::ToolCalls), "Hello.", 1)),
        // Some gateways send a reason to stop before the answer begins.
        (vec![], "tool_calls", (Some(ModelFinish::ToolCalls), "", 1)),
    ] {
        for index in [None, Some(1)] {
            let sent = stream(before.clone(), finish).replace("data: [DONE]\n\n", "") + &late(index);
            let (model, _) = played(dialect("openai-compatible"), [Played::events(&sent)]);
            let (answer, told) = told(&model, &Asked::default()).await;
            let answer = answer.unwrap();
            let calls: Vec<_> = answer.calls().map(|call| (call.tool_call_id.as_str(), &call.input)).collect();
            assert_eq!((answer.finish_reason, &*answer.to_text(), calls.len()), expected, "{calls:?}");
            assert_eq!(told.iter().filter(|line| line.contains("call")).count(), calls.len(), "{told:?}");
            assert!(calls.iter().all(|(id, input)| *id == "early" && **input == json!({}) || before.is_empty()));
        }
    }
}
