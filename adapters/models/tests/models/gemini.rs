//! What requests to Gemini carry, and what its failures and its ends of answers mean.

use std::collections::BTreeSet;
use std::time::Duration;

use goondan::Agent;
use goondan_core::{ErrorCode, ModelFinish, ToolItem};
use goondan_covers::covers;
use goondan_models::wire::Gemini;
use goondan_models::{HttpModel, ModelConfig, providers};
use goondan_runtime::{DeltaSink, ModelResponse};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{
    self, Asked, Played, Reply, Sent, Server, Step, ask, config, requests_are_as_written_down, sent_body, told,
};

const ANSWER: &str =
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hello.\"}]},\"finishReason\":\"STOP\"}]}\n\n";

fn model(config: ModelConfig, sent: &Sent) -> HttpModel<Gemini> {
    config.model(&providers::GEMINI, Gemini).unwrap().with_transport(sent.clone())
}

/// Returns a model whose failures are not repeated.
fn played(responses: impl IntoIterator<Item = Played>) -> (HttpModel<Gemini>, Sent) {
    let sent = Sent::to(responses);
    (model(config("http://127.0.0.1:9"), &sent), sent)
}

/// Returns the body of a request to the model `name`.
async fn body_of(name: &str, asked: Asked) -> goondan_core::Result<Value> {
    sent_body(&providers::GEMINI, Gemini, name, ANSWER, asked).await
}

/// Returns a stream of one event for each candidate.
fn stream(candidates: impl IntoIterator<Item = Value>) -> String {
    candidates.into_iter().map(|candidate| format!("data: {}\n\n", json!({ "candidates": [candidate] }))).collect()
}

async fn answer_of(candidates: impl IntoIterator<Item = Value>) -> goondan_core::Result<ModelResponse> {
    ask(&played([Played::events(&stream(candidates))]).0).await
}

fn call(id: &str) -> Value {
    json!({ "type": "tool-call", "toolCallId": id, "toolName": "a__b", "input": {} })
}

fn result(id: &str) -> Value {
    let output = json!({ "type": "text", "value": "done" });
    let part = json!({ "type": "tool-result", "toolCallId": id, "toolName": "a__b", "output": output });
    json!({ "role": "tool", "content": [part] })
}

#[tokio::test]
async fn bodies_are_as_written_down() {
    let body = async |case: &Value, asked| body_of(case["model"].as_str().unwrap(), asked).await;
    requests_are_as_written_down("gemini", body).await;
}

#[tokio::test]
async fn a_conversation_goes_over_http_to_the_address_of_the_model() {
    let call = json!({ "content": { "parts": [{ "functionCall": { "name": "a__b" } }] }, "finishReason": "STOP" });
    let server = Server::start([
        Reply::events(&stream([call])).with_crlf().in_pieces(3),
        Reply::events(ANSWER).in_pieces(1),
        Reply::events(ANSWER),
    ])
    .await;
    let mut config = config(&format!("{}/", server.url()));
    config.model = "gemini-example".to_owned();
    let model = config.clone().model(&providers::GEMINI, Gemini).unwrap();
    let first = ask(&model).await.unwrap();
    let id = first.calls().next().unwrap().tool_call_id.clone();
    let conversation = json!([
        { "role": "user", "content": "hello" },
        { "role": "assistant", "content": first.content },
        result(id.as_str()),
    ]);
    assert_eq!(Asked::messages(conversation).of(&model, DeltaSink::none()).await.unwrap().to_text(), "Hello.");
    config.model = "tunedModels/mine".to_owned();
    ask(&config.model(&providers::GEMINI, Gemini).unwrap()).await.unwrap();
    let requests = server.requests();
    let paths: Vec<_> = requests.iter().map(|request| &*request.path).collect();
    assert_eq!(
        paths,
        [
            "/v1beta/models/gemini-example:streamGenerateContent?alt=sse",
            "/v1beta/models/gemini-example:streamGenerateContent?alt=sse",
            "/v1beta/tunedModels/mine:streamGenerateContent?alt=sse",
        ]
    );
    assert_eq!(requests[0].header("x-goog-api-key"), Some("key-for-tests-4711"));
    assert_eq!(requests[0].header("authorization"), None);
    // The provider gave the call no id, so its result has none.
    let response = json!({ "functionResponse": { "name": "a__b", "response": { "output": "done" } } });
    assert_eq!(requests[1].body["contents"][2]["parts"], json!([response]));
}

#[tokio::test]
async fn an_effort_is_a_level_or_a_budget_by_the_model() {
    for (model, options, thinking) in [
        ("gemini-3-flash", json!({ "effort": "minimal" }), json!({ "thinkingLevel": "minimal" })),
        ("gemini-3-flash", json!({ "effort": "low" }), json!({ "thinkingLevel": "low" })),
        ("gemini-3-flash", json!({ "effort": "medium" }), json!({ "thinkingLevel": "medium" })),
        ("gemini-9", json!({ "effort": "max" }), json!({ "thinkingLevel": "high" })),
        ("gemini-3-flash", json!({ "effort": "low", "budgetTokens": 99 }), json!({ "thinkingBudget": 99 })),
        ("gemini-2.5-flash", json!({ "effort": "none" }), json!({ "thinkingBudget": 0 })),
        ("gemini-2.5-flash", json!({ "effort": "none", "budgetTokens": 99 }), json!({ "thinkingBudget": 0 })),
        ("gemini-2.5-flash", json!({ "effort": "minimal" }), json!({ "thinkingBudget": 512 })),
        ("gemini-2.5-flash", json!({ "effort": "low" }), json!({ "thinkingBudget": 1024 })),
        ("gemini-2.5-flash", json!({ "effort": "medium" }), json!({ "thinkingBudget": 8192 })),
        ("gemini-2.5-flash", json!({ "effort": "high" }), json!({ "thinkingBudget": 24576 })),
        ("m", json!({ "summary": "auto" }), json!({ "includeThoughts": true })),
        ("m", json!({ "summary": "off" }), json!({ "includeThoughts": false })),
        ("m", json!({}), json!(null)),
    ] {
        let body = body_of(model, Asked::default().options(json!({ "reasoning": options }))).await.unwrap();
        assert_eq!(body["generationConfig"]["thinkingConfig"], thinking, "{model} {options}");
    }
}

#[tokio::test]
async fn the_choice_of_tools_is_a_mode() {
    for (choice, config) in [
        (json!("auto"), json!({ "mode": "AUTO" })),
        (json!("none"), json!({ "mode": "NONE" })),
        (json!("required"), json!({ "mode": "ANY" })),
        (json!({ "tool": "a__b" }), json!({ "mode": "ANY", "allowedFunctionNames": ["a__b"] })),
    ] {
        let asked = Asked { tools: vec![ToolItem::new("a__b").unwrap()], ..Asked::default() };
        let body = body_of("m", asked.options(json!({ "toolChoice": choice }))).await.unwrap();
        assert_eq!(body["toolConfig"]["functionCallingConfig"], config);
    }
    let without = body_of("m", Asked::default().options(json!({ "toolChoice": "none" }))).await.unwrap();
    assert_eq!((&without["toolConfig"], &without["tools"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn options_that_cannot_be_honoured_are_refused_before_anything_is_sent() {
    for (options, option) in [
        (json!({ "parallelToolCalls": false }), "parallelToolCalls"),
        (json!({ "stop": ["1", "2", "3", "4", "5", "6"] }), "stop"),
        (json!({ "seed": 3_000_000_000_u32 }), "seed"),
        (json!({ "reasoning": { "summary": "concise" } }), "reasoning/summary"),
        (json!({ "reasoning": { "effort": "none" } }), "reasoning/effort"),
        (json!({ "toolChoice": "required" }), "toolChoice"),
        (json!({ "toolChoice": { "tool": "a__b" } }), "toolChoice"),
        (json!({ "provider": { "contents": [] } }), "provider/contents"),
        (json!({ "provider": { "systemInstruction": {} } }), "provider/systemInstruction"),
    ] {
        let error = body_of("m", Asked::default().options(options.clone())).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::MODEL_OPTION, "{options}");
        assert_eq!(error.details()["option"], option, "{error}");
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn every_reason_to_stop_has_a_meaning() {
    let text = json!({ "parts": [{ "text": "Hi." }] });
    let call = json!({ "parts": [{ "functionCall": { "id": "1", "name": "a__b" } }] });
    for (reason, content, finish) in [
        ("STOP", &text, "stop"),
        ("STOP", &call, "tool-calls"),
        ("MAX_TOKENS", &text, "length"),
        ("MAX_TOKENS", &call, "length"),
        ("SAFETY", &text, "content-filter"),
        ("RECITATION", &text, "content-filter"),
        ("LANGUAGE", &text, "content-filter"),
        ("BLOCKLIST", &text, "content-filter"),
        ("PROHIBITED_CONTENT", &text, "content-filter"),
        ("SPII", &text, "content-filter"),
        ("IMAGE_SAFETY", &text, "content-filter"),
        ("MALFORMED_FUNCTION_CALL", &text, "tool-calls"),
        ("UNEXPECTED_TOOL_CALL", &text, "tool-calls"),
        ("OTHER", &text, "other"),
        ("FINISH_REASON_UNSPECIFIED", &text, "other"),
        ("REASON_OF_TOMORROW", &text, "other"),
    ] {
        let answer = answer_of([json!({ "content": content, "finishReason": reason })]).await.unwrap();
        assert_eq!(json!(answer.finish_reason), finish, "{reason}");
    }
}

#[tokio::test]
async fn a_blocked_prompt_is_a_refusal_without_an_answer() {
    let blocked = json!({
        "promptFeedback": { "blockReason": "PROHIBITED_CONTENT", "safetyRatings": [] },
        "usageMetadata": { "promptTokenCount": 5, "totalTokenCount": 5 },
        "responseId": "resp-blocked",
    });
    let mut config = config("http://127.0.0.1:9");
    config.retries.max = 4;
    let sent = Sent::to([Played::events(&format!("data: {blocked}\n\n"))]);
    let error = ask(&model(config, &sent)).await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (&ErrorCode::MODEL_REFUSED, false));
    assert!(error.message().contains("PROHIBITED_CONTENT"), "{error}");
    assert_eq!((&error.details()["requestId"], sent.bodies().len()), (&json!("resp-blocked"), 1));
    // The feedback alone blocks nothing.
    let told = json!({
        "promptFeedback": { "safetyRatings": [] },
        "candidates": [{ "content": { "parts": [{ "text": "Hi." }] }, "finishReason": "STOP" }],
    });
    assert_eq!(ask(&played([Played::events(&format!("data: {told}\n\n"))]).0).await.unwrap().to_text(), "Hi.");
}

#[tokio::test]
async fn what_comes_after_the_reason_to_stop_is_not_lost() {
    let counts = json!({ "usageMetadata": { "promptTokenCount": 7, "candidatesTokenCount": 2, "totalTokenCount": 9 } });
    let answer = ask(&played([Played::events(&format!("{ANSWER}data: {counts}\n\n"))]).0).await.unwrap();
    let usage = answer.usage.as_ref().unwrap();
    assert_eq!((answer.to_text().as_ref(), usage.prompt_tokens, usage.total_tokens), ("Hello.", 7, 9));
}

#[tokio::test]
async fn ids_that_are_taken_or_missing_are_replaced_before_watchers_see_them() {
    let part = |id: Value| json!({ "functionCall": { "id": id, "name": "a__b", "args": {} } });
    let none = json!({ "functionCall": { "name": "a__b", "args": {} } });
    let parts = [part(json!("1")), part(json!("2")), part(json!("2")), part(json!("")), none];
    let (model, _) =
        played([Played::events(&stream([json!({ "content": { "parts": parts }, "finishReason": "STOP" })]))]);
    let conversation = json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [call("1")] },
        result("1"),
    ]);
    let (answer, told) = told(&model, &Asked::messages(conversation)).await;
    let answer = answer.unwrap();
    let ids: Vec<_> = answer.calls().map(|call| call.tool_call_id.as_str()).collect();
    let expected: Vec<_> = ids.iter().enumerate().map(|(part, id)| format!("{part} call {id} a__b")).collect();
    assert_eq!(told, expected);
    let unique: BTreeSet<_> = ids.iter().copied().chain(["1", ""]).collect();
    assert_eq!(unique.len(), 7, "{ids:?}");
    // What the provider called them returns.
    let mut messages = json!([{ "role": "user", "content": "a" }, { "role": "assistant", "content": answer.content }]);
    messages.as_array_mut().unwrap().extend(ids.iter().rev().map(|id| result(id)));
    let body = body_of("m", Asked::messages(messages)).await.unwrap();
    for (content, member) in [(1, "functionCall"), (2, "functionResponse")] {
        let parts = body["contents"][content]["parts"].as_array().unwrap();
        let ids: Vec<_> = parts.iter().map(|part| part[member]["id"].as_str()).collect();
        assert_eq!(ids, [Some("1"), Some("2"), Some("2"), None, None], "{member}");
    }
}

#[tokio::test]
async fn a_call_whose_arguments_are_cut_off_is_no_call_that_can_run() {
    let begun = json!({ "functionCall": { "id": "1", "name": "a__b", "willContinue": true } });
    let pieces = json!([{ "jsonPath": "$.path", "stringValue": "/", "willContinue": true }]);
    let piece = json!({ "functionCall": { "partialArgs": pieces, "willContinue": true } });
    for (parts, arguments) in [(vec![begun.clone()], "{"), (vec![begun, piece], "{\"path\":\"/\"")] {
        let candidate = json!({ "content": { "parts": parts }, "finishReason": "MAX_TOKENS" });
        let answer = answer_of([candidate]).await.unwrap();
        assert_eq!(answer.calls().next().unwrap().input, arguments);
    }
}

fn report(code: u16, status: &str, message: &str, details: Value) -> Value {
    json!({ "error": { "code": code, "status": status, "message": message, "details": details } })
}

#[tokio::test(start_paused = true)]
async fn each_failure_has_its_code() {
    let key = json!([
        { "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID",
            "domain": "googleapis.com" },
        { "@type": "type.googleapis.com/google.rpc.LocalizedMessage", "locale": "en-US", "message": "…" },
    ]);
    let none = json!([]);
    for (code, status, message, details, expected, retryable) in [
        (400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", &key, "E_MODEL_AUTH", false),
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", &none, "E_MODEL_AUTH", false),
        (403, "PERMISSION_DENIED", "You have no access.", &none, "E_MODEL_AUTH", false),
        (401, "UNAUTHENTICATED", "Missing.", &none, "E_MODEL_AUTH", false),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", &none, "E_MODEL_RATE_LIMIT", true),
        (503, "UNAVAILABLE", "The model is overloaded.", &none, "E_MODEL_OVERLOADED", true),
        (500, "INTERNAL", "An internal error has occurred.", &none, "E_MODEL_OVERLOADED", true),
        (504, "DEADLINE_EXCEEDED", "Too late.", &none, "E_MODEL_OVERLOADED", true),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
            &none,
            "E_MODEL_CONTEXT_OVERFLOW",
            false,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "Unable to submit request because the input token count is 9 but model only supports up to 8.",
            &none,
            "E_MODEL_CONTEXT_OVERFLOW",
            false,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "Request payload size exceeds the limit: 20971520 bytes.",
            &none,
            "E_MODEL_CONTEXT_OVERFLOW",
            false,
        ),
        (400, "INVALID_ARGUMENT", "Invalid JSON payload received.", &none, "E_MODEL_REQUEST", false),
        (400, "FAILED_PRECONDITION", "User location is not supported.", &none, "E_MODEL_REQUEST", false),
        (404, "NOT_FOUND", "models/m is not found for API version v1beta.", &none, "E_MODEL_REQUEST", false),
    ] {
        let body = report(code, status, message, details.clone());
        let inside = format!("data: {}\n\ndata: {body}\n\n", json!({ "responseId": "resp" }));
        let responses = [Played::json(code, &body), Played::json(code, &json!([body])), Played::events(&inside)];
        for response in responses {
            let error = ask(&played([response]).0).await.unwrap_err();
            assert_eq!((error.code().as_str(), error.is_retryable()), (expected, retryable), "{body}: {error}");
            assert!(error.message().contains(message), "{error}");
            assert_eq!((&error.details()["status"], &error.details()["providerCode"]), (&json!(code), &json!(status)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_a_report_asks_for_is_kept() {
    let details = json!([
        { "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{ "quotaMetric": "requests" }] },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.25s" },
    ]);
    let limited = Played::json(429, &report(429, "RESOURCE_EXHAUSTED", "slow down", details));
    let sent = Sent::to([limited.clone(), Played::events(ANSWER)]);
    let mut patient = config("http://127.0.0.1:9");
    patient.retries.max = 2;
    let start = Instant::now();
    assert_eq!(ask(&model(patient, &sent)).await.unwrap().to_text(), "Hello.");
    let waited = start.elapsed();
    assert!((Duration::from_millis(7250)..Duration::from_millis(7260)).contains(&waited), "{waited:?}");
    let error = ask(&played([limited]).0).await.unwrap_err();
    assert_eq!(error.details()["retryAfterMs"], 7250);
}

#[tokio::test]
async fn a_request_whose_signatures_are_refused_is_repeated_without_them() {
    let data = |rest: Value| json!({ "api": "gemini", "model": "m", "rest": rest });
    let mut signed = call("1");
    signed["provider"] = data(json!({ "thoughtSignature": "bad", "id": null }));
    let thought = json!({ "type": "reasoning", "text": "hm", "provider": data(json!({ "thought": true })) });
    let block = json!({ "type": "provider", "provider": data(json!({ "toolCall": {}, "thoughtSignature": "bad" })) });
    let conversation = json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [thought, block, signed, call("2")] },
        result("1"),
        result("2"),
    ]);
    let refused = Played::json(400, &report(400, "INVALID_ARGUMENT", "Corrupted thought signature.", json!([])));
    let missing = Played::events(&stream([json!({ "finishReason": "MISSING_THOUGHT_SIGNATURE" })]));
    for response in [refused, missing] {
        let (model, sent) = played([response, Played::events(ANSWER)]);
        let answer = Asked::messages(conversation.clone()).of(&model, DeltaSink::none()).await.unwrap();
        assert_eq!(answer.to_text(), "Hello.");
        let [first, second] = <[Value; 2]>::try_from(sent.bodies()).unwrap();
        assert_eq!(first["contents"][1]["parts"][2]["thoughtSignature"], "bad");
        let expected = json!([
            { "toolCall": {} },
            {
                "functionCall": { "name": "a__b", "args": {} },
                "thoughtSignature": "skip_thought_signature_validator",
            },
            { "functionCall": { "id": "2", "name": "a__b", "args": {} } },
        ]);
        assert_eq!(second["contents"][1]["parts"], expected);
    }
}

#[tokio::test]
async fn events_that_cannot_be_read_are_failures_and_strange_ones_are_not() {
    let lost =
        json!({ "functionCall": { "name": "a__b", "partialArgs": [{ "jsonPath": "$.a[7]", "numberValue": 1 }] } });
    let lost = json!({ "candidates": [{ "content": { "parts": [lost] } }] }).to_string();
    for data in ["{", "<html>", "5", "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":5}]}}]}", &lost] {
        let error = ask(&played([Played::events(&format!("data: {data}\n\n"))]).0).await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), (&ErrorCode::MODEL_ANSWER, true), "{data}");
    }
    let strange = [
        json!({}),
        json!({ "content": null, "index": null }),
        json!({ "content": { "parts": null } }),
        json!({ "content": { "parts": [{ "functionCall": "a__b" }, { "inlineData": { "data": 5 } }] } }),
        json!({ "finishReason": "STOP", "groundingMetadata": null }),
    ];
    let answer = answer_of(strange).await.unwrap();
    let blocks: Vec<_> = answer.content.iter().map(|part| json!(part)["type"].clone()).collect();
    assert_eq!(blocks, ["provider", "provider"]);
}

/// A text is exactly what the model said, however its signatures cut it, and each goes back in its place.
#[tokio::test]
#[covers("MODEL-01")]
async fn signatures_cut_no_text() {
    let said = |text: &str| json!({ "text": text });
    let signed = |text: &str, signature: &str| json!({ "text": text, "thoughtSignature": signature });
    let whole = "Grüße from Seoul.";
    let call = json!({ "functionCall": { "id": "c", "name": "weather__today", "args": {} }, "thoughtSignature": "d" });
    for parts in [
        vec![signed(whole, "a")],
        vec![said(whole), signed("", "a")],
        vec![said("Grüße "), signed("from Seoul.", "a")],
        vec![signed("Grüße ", "a"), said("from Seoul.")],
        vec![signed("Grü", "a"), signed("ße", "b"), said(" from Seoul."), signed("", "c")],
        vec![signed("", "a"), said(whole)],
        vec![said(whole), call.clone(), signed("", "a")],
    ] {
        let candidates = parts.iter().map(|part| json!({ "content": { "parts": [part] } }));
        let candidates = candidates.chain([json!({ "finishReason": "STOP" })]);
        let (model, sent) = played([Played::events(&stream(candidates))]);
        let answer = ask(&model).await.unwrap();
        assert_eq!(answer.to_text(), whole);
        let mut messages = vec![
            json!({ "role": "user", "content": "hello" }),
            json!({ "role": "assistant", "content": answer.content }),
        ];
        messages.extend(answer.calls().map(|_| support::result("c", support::text("done"))));
        Asked::messages(messages.into()).of(&model, DeltaSink::none()).await.unwrap();
        assert_eq!(sent.bodies()[1]["contents"][1]["parts"], Value::from(parts));
    }
}

/// A text that was shortened after it arrived has no place for the signatures in it.
#[tokio::test]
async fn a_text_that_changed_goes_back_as_one() {
    let rest = json!({ "texts": [{ "end": 2, "members": { "thoughtSignature": "a" } }, { "end": 9, "members": {} }] });
    let provider = json!({ "api": "gemini", "model": "m", "rest": rest });
    let asked = Asked::messages(json!([
        { "role": "user", "content": "hello" },
        { "role": "assistant", "content": [{ "type": "text", "text": "short", "provider": provider }] },
    ]));
    let body = body_of("m", asked).await.unwrap();
    assert_eq!(body["contents"][1]["parts"], json!([{ "text": "sh", "thoughtSignature": "a" }, { "text": "ort" }]));
}

/// Some gateways send a reason to stop before the answer, or with each of its events.
#[tokio::test(start_paused = true)]
async fn a_reason_to_stop_before_the_answer_does_not_end_it() {
    let event = |parts: Value| stream([json!({ "content": { "parts": parts }, "finishReason": "STOP" })]).into();
    let (early, text) = (event(json!([])), event(json!([{ "text": "Hello" }])));
    let more = event(json!([{ "text": " there." }]));
    let steps = [
        Step::Bytes(early),
        Step::Wait(Duration::from_secs(20)),
        Step::Bytes(text),
        Step::Wait(Duration::from_secs(1)),
        Step::Bytes(more),
    ];
    let answer = ask(&played([Played::new(200, steps)]).0).await.unwrap();
    assert_eq!((&*answer.to_text(), answer.finish_reason), ("Hello there.", Some(ModelFinish::Stop)));

    let nothing = ask(&played([Played::events(&stream([json!({ "finishReason": "STOP" })]))]).0).await.unwrap();
    assert!(nothing.content.is_empty());
}

#[tokio::test]
async fn an_answer_of_blanks_is_asked_for_again() {
    let said = |text: &str| {
        let part = json!({ "text": text, "thoughtSignature": "c2lnbmVk" });
        Played::events(&stream([json!({ "content": { "parts": [part] }, "finishReason": "STOP" })]))
    };
    let (model, sent) = played([said(" \n"), said(""), said("Hello.")]);
    let agent = Agent::builder("assistant").model(model).build().unwrap();
    let turn = agent.instance("one").await.unwrap().run("hi").await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps(), sent.bodies().len()), ("Hello.", 3, 3));
}
