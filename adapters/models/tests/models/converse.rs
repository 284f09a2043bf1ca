//! What requests to Amazon Bedrock carry, and what its frames, failures and ends of answers mean.

use std::time::Duration;

use goondan_core::{ErrorCode, ModelFinish};
use goondan_covers::covers;
use goondan_models::wire::Converse;
use goondan_models::{Cassette, HttpModel, ModelConfig, providers};
use goondan_runtime::DeltaSink;
use serde_json::{Value, json};

use crate::support::{
    Asked, Framing, Played, Recording, Reply, Sent, Server, ask, call, config, requests_are_as_written_down, result,
    sent_body, text, told, weather,
};

const ANSWER: &str = concat!(
    "data: {\"messageStart\":{\"role\":\"assistant\"}}\n\n",
    "data: {\"contentBlockDelta\":{\"contentBlockIndex\":0,\"delta\":{\"text\":\"Hello.\"}}}\n\n",
    "data: {\"messageStop\":{\"stopReason\":\"end_turn\"}}\n\n",
    "data: {\"metadata\":{\"usage\":{\"inputTokens\":3,\"outputTokens\":2,\"totalTokens\":5}}}\n\n",
);

fn model(config: ModelConfig) -> HttpModel<Converse> {
    config.model(&providers::BEDROCK, Converse).unwrap()
}

/// Returns a model whose failures are not repeated.
fn played(responses: impl IntoIterator<Item = Played>) -> (HttpModel<Converse>, Sent) {
    let sent = Sent::to(responses);
    (model(config("http://127.0.0.1:9")).with_transport(sent.clone()), sent)
}

/// Returns the body of a request to the model `name`.
async fn body_of(name: &str, asked: Asked) -> goondan_core::Result<Value> {
    sent_body(&providers::BEDROCK, Converse, name, ANSWER, asked).await
}

#[tokio::test]
async fn bodies_are_as_written_down() {
    let body = async |case: &Value, asked| body_of(case["model"].as_str().unwrap(), asked).await;
    requests_are_as_written_down("converse", body).await;
}

#[tokio::test]
async fn a_conversation_goes_over_http_in_frames_to_the_address_of_the_model() {
    let calls = Recording::all("converse").into_iter().find(|recording| recording.name == "calls").unwrap();
    let server = Server::start([
        Reply::framed(&calls.stream()).in_pieces(1),
        Reply::framed(ANSWER).in_pieces(7),
        Reply::framed(ANSWER),
    ])
    .await;
    let mut config = config(&format!("{}/", server.url()));
    config.model = "anthropic.claude-example-v1:0".to_owned();
    let first = model(config.clone());
    let answer = ask(&first).await.unwrap();
    assert_eq!(answer.request_id.as_deref(), Some("aws-1"));
    assert_eq!(answer.usage.as_ref().unwrap().cached_prompt_tokens, 2000);
    assert_eq!(answer.finish_reason, Some(ModelFinish::ToolCalls));
    let mut messages =
        vec![json!({ "role": "user", "content": "hello" }), json!({ "role": "assistant", "content": answer.content })];
    messages.extend(answer.calls().map(|call| result(call.tool_call_id.as_str(), text("done"))));
    let asked = Asked { tools: vec![weather()], ..Asked::messages(messages.into()) };
    assert_eq!(asked.of(&first, DeltaSink::none()).await.unwrap().to_text(), "Hello.");
    config.model = "arn:aws:bedrock:eu-west-1:1:inference-profile/x".to_owned();
    ask(&model(config)).await.unwrap();
    let requests = server.requests();
    let paths: Vec<_> = requests.iter().map(|request| &*request.path).collect();
    assert_eq!(
        paths,
        [
            "/model/anthropic.claude-example-v1%3A0/converse-stream",
            "/model/anthropic.claude-example-v1%3A0/converse-stream",
            "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fx/converse-stream",
        ]
    );
    assert_eq!(requests[0].header("authorization"), Some("Bearer key-for-tests-4711"));
    assert_eq!(requests[0].header("accept"), Some("application/vnd.amazon.eventstream"));
    // The signature goes back over the same model.
    let thought = json!({ "text": "Two cities, two calls.", "signature": "c2lnbmF0dXJlLTE=" });
    assert_eq!(
        requests[1].body["messages"][1]["content"][0],
        json!({ "reasoningContent": { "reasoningText": thought } })
    );
}

#[tokio::test]
async fn every_recording_is_the_same_in_frames() {
    for recording in Recording::all("converse") {
        let server = Server::start([Reply::framed(&recording.stream()).in_pieces(61)]).await;
        let (answer, _) = told(&model(config(server.url())), &Asked::default()).await;
        let mut answer = json!(answer.unwrap());
        answer.as_object_mut().unwrap().shift_remove("requestId");
        assert_eq!(answer, recording.expected["response"], "{}", recording.name);
        assert_eq!(recording.expected["source"], "documented", "{}", recording.name);
        let sent = Sent::to([recording.played(Framing::Whole)]);
        ask(&model(config("http://127.0.0.1:9")).with_transport(sent)).await.unwrap();
    }
}

#[tokio::test]
#[covers("AWS-01")]
async fn a_frame_that_is_not_what_was_sent_breaks_the_connection_and_the_request_is_repeated() {
    for broken in [
        Reply::framed(ANSWER).corrupted(),
        Reply::framed(&ANSWER[..ANSWER.find("data: {\"messageStop").unwrap()]),
        Reply::framed(ANSWER).cut(150).closed(),
        Reply::framed(ANSWER).cut(150).reset(),
    ] {
        let whole = Reply::framed(&ANSWER[..ANSWER.find("data: {\"metadata").unwrap()]);
        let server = Server::start([broken.clone(), broken, whole]).await;
        let error = ask(&model(config(server.url()))).await;
        // After the reason to stop, only counts are lost.
        if let Err(error) = &error {
            assert_eq!((error.code(), error.is_retryable()), (&ErrorCode::MODEL_NETWORK, true), "{error}");
        }
        let mut patient = config(server.url());
        patient.retries.max = 2;
        assert_eq!(ask(&model(patient)).await.unwrap().to_text(), "Hello.");
    }
}

#[tokio::test]
#[covers("SIZE-01")]
async fn a_frame_that_is_too_large_is_refused_while_it_arrives() {
    let piece = "data: {\"contentBlockDelta\":{\"contentBlockIndex\":0,\"delta\":{\"text\":\"PIECE\"}}}\n\n";
    for (stream, endless) in [(piece.replace("PIECE", &"x".repeat(1 << 20)), false), (piece.to_owned(), true)] {
        let reply = Reply::framed(&stream).in_pieces(1 << 14);
        let server = Server::start([if endless { reply.endless() } else { reply.stalled() }]).await;
        let mut config = config(server.url());
        config.retries.max = 3;
        config.answer.max_bytes = 256 << 10;
        let error = ask(&model(config)).await.unwrap_err();
        assert_eq!((error.code(), server.requests().len()), (&ErrorCode::MODEL_ANSWER, 1), "{error}");
        assert!(error.message().contains("answer.maxBytes"), "{error}");
    }
}

#[tokio::test]
#[covers("MODEL-04")]
async fn frames_are_recorded_as_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("main.jsonl");
    let server = Server::start([Reply::framed(ANSWER).in_pieces(11)]).await;
    let recorded = ask(&model(config(server.url())).with_cassette(Cassette::record(&path).unwrap())).await.unwrap();
    let line = std::fs::read_to_string(&path).unwrap().lines().nth(1).unwrap().to_owned();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["response"]["events"][0][2], "{\"messageStart\":{\"role\":\"assistant\"}}");
    assert_eq!(line["response"]["headers"]["x-amzn-requestid"], "aws-1");
    // Neither a key nor a server is needed to play it.
    let mut config = ModelConfig::new("m");
    config.region = Some("eu-central-1".to_owned());
    let cassette = Cassette::replay(&path).unwrap();
    let played = ask(&model(config).with_cassette(cassette.clone())).await.unwrap();
    assert_eq!(json!(played), json!(recorded));
    cassette.finish().unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_failure_has_its_code() {
    for (status, kind, message, expected, retryable) in [
        (429, "ThrottlingException", "Too many requests.", "E_MODEL_RATE_LIMIT", true),
        (429, "ModelNotReadyException", "The model is not ready.", "E_MODEL_RATE_LIMIT", true),
        (503, "ServiceUnavailableException", "Not available.", "E_MODEL_OVERLOADED", true),
        (500, "InternalServerException", "It failed.", "E_MODEL_OVERLOADED", true),
        (408, "ModelTimeoutException", "It took too long.", "E_MODEL_OVERLOADED", true),
        (424, "ModelErrorException", "The model failed.", "E_MODEL_OVERLOADED", true),
        (403, "AccessDeniedException", "You have no access to the model.", "E_MODEL_AUTH", false),
        (403, "UnrecognizedClientException", "The security token is invalid.", "E_MODEL_AUTH", false),
        (403, "InvalidSignatureException", "The signature does not match.", "E_MODEL_AUTH", false),
        (400, "ExpiredTokenException", "The security token has expired.", "E_MODEL_AUTH", false),
        (400, "ServiceQuotaExceededException", "Your quota is used up.", "E_MODEL_QUOTA", false),
        (400, "ValidationException", "The provided model identifier is invalid.", "E_MODEL_REQUEST", false),
        (404, "ResourceNotFoundException", "There is no such model.", "E_MODEL_REQUEST", false),
        (400, "ValidationException", "Input is too long for requested model.", "E_MODEL_CONTEXT_OVERFLOW", false),
    ] {
        let plain = Played::json(status, &json!({ "message": message })).header("x-amzn-errortype", format!("{kind}:"));
        let capital = Played::json(status, &json!({ "Message": message })).header("x-amzn-errortype", kind);
        let typed = Played::json(status, &json!({ "__type": format!("of.aws#{kind}"), "message": message }));
        for response in [plain, capital, typed] {
            let error = ask(&played([response.header("x-amzn-requestid", "aws-1")]).0).await.unwrap_err();
            assert_eq!((error.code().as_str(), error.is_retryable()), (expected, retryable), "{error}");
            assert!(error.message().contains(message) && error.message().contains("aws-1"), "{error}");
            assert_eq!(error.details()["providerCode"], kind);
        }
    }
}

#[tokio::test]
async fn each_exception_in_the_stream_has_its_code() {
    for (kind, expected, retryable) in [
        ("throttlingException", "E_MODEL_RATE_LIMIT", true),
        ("serviceUnavailableException", "E_MODEL_OVERLOADED", true),
        ("internalServerException", "E_MODEL_OVERLOADED", true),
        ("modelStreamErrorException", "E_MODEL_OVERLOADED", true),
        ("exceptionOfTomorrowException", "E_MODEL_OVERLOADED", true),
        ("validationException", "E_MODEL_REQUEST", false),
    ] {
        let begun = &ANSWER[..ANSWER.find("data: {\"messageStop").unwrap()];
        let report = json!({ kind: { "message": "told in the stream" } });
        let server = Server::start([Reply::framed(&format!("{begun}data: {report}\n\n"))]).await;
        let error = ask(&model(config(server.url()))).await.unwrap_err();
        assert_eq!((error.code().as_str(), error.is_retryable()), (expected, retryable), "{error}");
        assert!(error.message().contains("told in the stream"), "{error}");
        assert_eq!((&error.details()["providerCode"], &error.details()["requestId"]), (&json!(kind), &json!("aws-1")));
    }
}

#[tokio::test]
async fn a_request_whose_signature_is_refused_is_repeated_without_it() {
    let provider = json!({ "api": "converse", "model": "m", "rest": { "signature": "bad" } });
    let thought = json!({ "type": "reasoning", "text": "hm", "provider": provider });
    let conversation = json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [thought, call("1", json!({}), None)] },
        result("1", text("done")),
    ]);
    let refused = json!({ "message": "messages.1.content.0: Invalid `signature` in `thinking` block" });
    let refused = Played::json(400, &refused).header("x-amzn-errortype", "ValidationException");
    let (model, sent) = played([refused, Played::events(ANSWER)]);
    let asked = Asked { tools: vec![weather()], ..Asked::messages(conversation) };
    assert_eq!(asked.of(&model, DeltaSink::none()).await.unwrap().to_text(), "Hello.");
    let contents: Vec<_> = sent.bodies().iter().map(|body| body["messages"][1]["content"].clone()).collect();
    assert!(contents[0][0]["reasoningContent"].is_object(), "{contents:?}");
    assert!(contents[1][0]["toolUse"].is_object(), "{contents:?}");
}

#[tokio::test]
async fn the_maker_of_the_model_says_how_an_effort_is_written() {
    let limit = 8192 + 4096;
    for (model, options, members) in [
        (
            "eu.anthropic.claude-opus-4-6-v1",
            json!({ "effort": "low" }),
            json!({
            "thinking": { "type": "adaptive" }, "output_config": { "effort": "low" } }),
        ),
        (
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            json!({ "effort": "low" }),
            json!({
            "thinking": { "type": "enabled", "budget_tokens": 4096 } }),
        ),
        (
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            json!({ "effort": "none" }),
            json!({
            "thinking": { "type": "disabled" } }),
        ),
        (
            "us.amazon.nova-2-lite-v1:0",
            json!({ "effort": "max" }),
            json!({
            "reasoningConfig": { "type": "enabled", "maxReasoningEffort": "high" } }),
        ),
        (
            "us.amazon.nova-2-lite-v1:0",
            json!({ "effort": "none" }),
            json!({ "reasoningConfig": { "type": "disabled" } }),
        ),
        ("openai.gpt-oss-120b-1:0", json!({ "effort": "minimal" }), json!({ "reasoning_effort": "low" })),
    ] {
        let body = body_of(model, Asked::default().options(json!({ "reasoning": options }))).await.unwrap();
        assert_eq!(body["additionalModelRequestFields"], members, "{model}");
        let max = body["inferenceConfig"]["maxTokens"].as_u64();
        assert_eq!(max, members["thinking"]["budget_tokens"].as_u64().map(|_| limit), "{model}");
    }
}

#[tokio::test]
async fn what_converse_or_the_model_cannot_do_is_refused() {
    for (model, options, option) in [
        ("anthropic.claude-x", json!({ "seed": 1 }), "seed"),
        ("m", json!({ "seed": 1 }), "seed"),
        ("m", json!({ "parallelToolCalls": false }), "parallelToolCalls"),
        ("m", json!({ "reasoning": { "effort": "low" } }), "reasoning/effort"),
        ("amazon.nova-2", json!({ "reasoning": { "budgetTokens": 2000 } }), "reasoning/budgetTokens"),
        ("openai.gpt-oss", json!({ "reasoning": { "effort": "none" } }), "reasoning/effort"),
        ("openai.gpt-oss", json!({ "reasoning": { "summary": "off" } }), "reasoning/summary"),
        ("m", json!({ "toolChoice": "required" }), "toolChoice"),
        ("m", json!({ "toolChoice": { "tool": "other__tool" } }), "toolChoice"),
        ("m", json!({ "provider": { "toolConfig": {} } }), "provider/toolConfig"),
    ] {
        let error = body_of(model, Asked::default().options(options.clone())).await.unwrap_err();
        assert_eq!((error.code(), &error.details()["option"]), (&ErrorCode::MODEL_OPTION, &json!(option)), "{options}");
        assert!(error.message().contains("`converse`"), "{error}");
    }
}

#[tokio::test]
async fn by_default_models_that_have_a_cache_get_its_marks() {
    for (model, cache, marks) in [
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", None, 2),
        ("anthropic.claude-3-haiku-20240307-v1:0", None, 0),
        ("anthropic.claude-3-haiku-20240307-v1:0", Some("auto"), 2),
        ("amazon.nova-pro-v1:0", None, 2),
        ("meta.llama4-scout-17b-instruct-v1:0", None, 0),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", Some("off"), 0),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", Some("long"), 2),
    ] {
        let asked = Asked { system: Some("Be brief."), ..Asked::default() };
        let asked = match cache {
            Some(cache) => asked.options(json!({ "cache": cache })),
            None => asked,
        };
        let body = body_of(model, asked).await.unwrap();
        assert_eq!(body.to_string().matches("cachePoint").count(), marks, "{model}: {body}");
        let ttl = json!({ "type": "default", "ttl": "1h" });
        assert_eq!(body["system"][1]["cachePoint"] == ttl, cache == Some("long"), "{model}: {body}");
    }
}

#[test]
fn the_region_is_said_or_is_that_of_the_host() {
    let problems = |config: Value| {
        let config: ModelConfig = serde_json::from_value(config).unwrap();
        let problems = config.problems(&providers::BEDROCK, &Converse);
        problems.into_iter().map(|problem| (problem.setting, problem.is_hint)).collect::<Vec<_>>()
    };
    let host = "https://bedrock-runtime.eu-central-1.amazonaws.com";
    for fine in [
        json!({ "model": "m", "region": "eu-central-1" }),
        json!({ "model": "m", "baseUrl": host }),
        json!({ "model": "m", "baseUrl": host, "region": "us-east-1" }),
        json!({ "model": "m", "baseUrl": "https://vpce.amazonaws.com", "region": "us-east-1" }),
        json!({ "model": "m", "baseUrl": "http://127.0.0.1:9" }),
        json!({ "model": "m", "baseUrl": "https://gateway.example" }),
    ] {
        assert!(problems(fine.clone()).is_empty(), "{fine}");
    }
    for (wrong, setting) in [
        (json!({ "model": "m" }), ""),
        (json!({ "model": "m", "region": "x.evil.example/" }), "/region"),
        (json!({ "model": "m", "baseUrl": "https://vpce.amazonaws.com" }), "/baseUrl"),
    ] {
        assert_eq!(problems(wrong.clone()), [(setting.to_owned(), false)], "{wrong}");
    }
    let mut other = ModelConfig::new("m");
    other.region = Some("eu-central-1".to_owned());
    let problems = other.problems(&providers::ANTHROPIC, &goondan_models::wire::Anthropic);
    assert_eq!(problems.iter().map(|problem| &*problem.setting).collect::<Vec<_>>(), ["/region"]);
}

/// After the reason to stop, counts are waited for, but not for long.
#[tokio::test(start_paused = true)]
async fn counts_that_do_not_come_are_not_waited_for() {
    let begun = &ANSWER[..ANSWER.find("data: {\"metadata").unwrap()];
    let silent = Played::events(begun).then(crate::support::Step::Wait(Duration::from_secs(600)));
    let started = tokio::time::Instant::now();
    let answer = ask(&played([silent]).0).await.unwrap();
    assert_eq!((&*answer.to_text(), answer.usage), ("Hello.", None));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    // Some servers send the counts first.
    let (stop, counts) = (ANSWER.find("data: {\"messageStop").unwrap(), ANSWER.find("data: {\"metadata").unwrap());
    let swapped = format!("{}{}{}", &ANSWER[..stop], &ANSWER[counts..], &ANSWER[stop..counts]);
    assert_eq!(ask(&played([Played::events(&swapped)]).0).await.unwrap().usage.unwrap().total_tokens, 5);
}
