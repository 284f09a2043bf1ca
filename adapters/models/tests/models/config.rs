//! What is wrong with a config is known before anything is sent.

use goondan_models::wire::Anthropic;
use goondan_models::{ModelConfig, Provider, providers};
use serde_json::{Value, json};

fn read(config: Value) -> Result<ModelConfig, String> {
    serde_json::from_value(config).map_err(|error| error.to_string())
}

/// Returns the places of errors and hints, and what they say.
fn problems(config: Value, provider: &Provider) -> Vec<(String, bool, String)> {
    let problems = read(config).unwrap().problems(provider, &Anthropic);
    let shown = |problem: &goondan_models::Problem| problem.error.message().into_owned();
    problems.iter().map(|problem| (problem.setting.clone(), problem.is_hint, shown(problem))).collect()
}

#[test]
fn a_config_has_every_member_of_the_documentation() {
    let config = read(json!({
        "model": "claude-sonnet-4-5",
        "baseUrl": "http://localhost:8080/anthropic/",
        "apiKey": "a-key-for-config",
        "headers": { "anthropic-beta": "interleaved-thinking-2025-05-14" },
        "options": { "maxOutputTokens": 16000, "reasoning": { "effort": "medium" }, "cache": "auto" },
        "timeouts": { "firstMs": 1000 },
        "retries": { "max": 2 },
        "contextWindow": 200_000,
        "accepts": ["image/*", "application/pdf"],
        "prices": { "input": 3, "output": 15 },
    }));
    let config = config.unwrap();
    assert!(!format!("{config:?}").contains("a-key-for-config"));
    assert_eq!(
        (config.timeouts.connect_ms, config.timeouts.idle_ms, config.retries.budget_ms),
        (10_000, 60_000, 60_000)
    );
    assert!(config.problems(&providers::ANTHROPIC, &Anthropic).is_empty());
    let info = goondan_runtime::Model::info(&config.model(&providers::ANTHROPIC, Anthropic).unwrap());
    assert_eq!(
        (info.provider, info.model, info.context_window),
        ("anthropic".into(), "claude-sonnet-4-5".into(), Some(200_000))
    );
    assert_eq!(info.max_output, Some(16_000));
    assert_eq!(info.accepts.unwrap(), ["image/*", "application/pdf"]);
}

#[test]
fn problems_have_their_place() {
    let nowhere = Provider::new("nowhere", None, false);
    for (config, provider, setting, hint, message) in [
        (json!({ "model": " " }), providers::ANTHROPIC, "/model", false, "is empty"),
        (json!({ "model": "m" }), nowhere, "", false, "`nowhere` has no address"),
        (json!({ "model": "m", "baseUrl": "ftp://a.example" }), nowhere, "/baseUrl", false, "not the address"),
        (json!({ "model": "m", "baseUrl": "api.example/v1" }), nowhere, "/baseUrl", false, "not the address"),
        (json!({ "model": "m", "baseUrl": "http://api.example/v1" }), nowhere, "/baseUrl", true, "not encrypted"),
        (
            json!({ "model": "m", "headers": { "a b": "c" } }),
            providers::ANTHROPIC,
            "/headers/a b",
            false,
            "the header `a b`",
        ),
        (json!({ "model": "m", "options": { "seed": 1 } }), providers::ANTHROPIC, "/options/seed", false, "`seed`"),
    ] {
        let found = problems(config.clone(), &provider);
        assert_eq!(found.len(), 1, "{config}: {found:?}");
        assert_eq!((&*found[0].0, found[0].1), (setting, hint), "{config}");
        assert!(found[0].2.contains(message), "{found:?}");
        assert_eq!(read(config).unwrap().model(&provider, Anthropic).is_err(), !hint);
    }
    for local in ["http://localhost:1", "http://127.0.0.1", "http://[::1]:8080/v1", "https://api.example"] {
        assert!(problems(json!({ "model": "m", "baseUrl": local }), &nowhere).is_empty(), "{local}");
    }
}

#[test]
fn unknown_members_and_wrong_types_are_refused() {
    for (config, message) in [
        (json!({}), "missing field `model`"),
        (json!({ "model": "m", "modle": 1 }), "unknown field `modle`"),
        (json!({ "model": "m", "timeouts": { "idle": 1 } }), "unknown field `idle`"),
        (json!({ "model": "m", "retries": { "max": -1 } }), "invalid value"),
        (json!({ "model": "m", "options": { "temprature": 1 } }), "unknown field `temprature`"),
    ] {
        let error = read(config).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}
