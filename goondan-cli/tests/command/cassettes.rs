//! `goondan run --cassettes`: the examples with real models, without key and network.

use std::fs;
use std::path::Path;
use std::process::Output;

use goondan_covers::covers;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{self, checkout, printed, stdout};

const EXAMPLES: [&str; 7] = ["anthropic", "bedrock", "gemini", "ollama", "openai", "openai-compatible", "openrouter"];

/// Runs a turn of a new conversation with an example, without any key.
fn run(example: &str, arguments: &[&str], variable: &str) -> Output {
    let state = TempDir::new().unwrap();
    let mut command = support::goondan();
    command.env_clear().env("GOONDAN_CASSETTES", variable).current_dir(checkout());
    command.args(["run", &format!("examples/{example}"), "--json", "--state-root"]).arg(state.path());
    command.args(arguments).output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Replaces what is another one in each run: ids and times.
fn without_ids(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| {
            let is_time = ["timestamp", "duration", "timeToFirstPiece"].contains(&name.trim_end_matches("Micros"));
            let differs = name.ends_with("Id") || is_time;
            *value = if differs { Value::Null } else { without_ids(value.take()) };
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_ids(item.take())),
        _ => {}
    }
    value
}

#[test]
#[covers("MODEL-04")]
fn every_example_with_a_real_model_is_played_the_same_each_time() {
    let arguments = ["--cassettes", "replay", "--stream", "--input", "Hello! What are you?"];
    for example in EXAMPLES {
        let output = run(example, &arguments, "");
        assert_eq!(output.status.code(), Some(0), "{example}: {output:?}");
        let first: Vec<_> = lines(&output).into_iter().map(without_ids).collect();
        let of = |kind: &str| first.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
        let answer = "Hello! I am an assistant in a recording.";
        assert_eq!(of("turn")[0]["response"].as_str().unwrap().trim_end(), answer, "{example}");
        let pieces: Vec<_> = of("text").into_iter().map(|line| line["text"].as_str().unwrap()).collect();
        assert_eq!(pieces, ["Hello! I am an assistant ", "in a recording."], "{example}");
        assert_eq!(of("reasoning")[0]["text"], "A greeting.", "{example}");
        let again: Vec<_> = lines(&run(example, &arguments, "off")).into_iter().map(without_ids).collect();
        assert_eq!(again, first, "{example}");
    }
}

#[test]
#[covers("MODEL-04")]
fn what_was_not_recorded_is_an_error_with_the_difference() {
    let output = run("openai", &["--input", "Hello! Who are you?"], "replay");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = &lines(&output)[0]["error"];
    assert_eq!(error["code"], "E_MODEL_CASSETTE", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("`/input/") && message.contains("Hello! Who are") && message.contains("What"),
        "{message}"
    );
}

#[test]
fn a_mode_that_does_not_exist_and_a_cassette_that_does_not_exist_are_mistakes() {
    let output = run("anthropic", &["--input", "hi"], "maybe");
    assert_eq!(output.status.code(), Some(2));
    assert!(format!("{output:?}").contains("record, replay or auto"), "{output:?}");
    let output = run("anthropic", &["--input", "hi", "--cassettes", "maybe"], "");
    assert_eq!(output.status.code(), Some(2));
    // Without its cassette, the example needs its key.
    let output = run("anthropic", &["--input", "hi", "--cassettes", "off"], "replay");
    assert_eq!(output.status.code(), Some(2));
    assert!(format!("{output:?}").contains("ANTHROPIC_API_KEY"), "{output:?}");
}

/// Runs the command, and returns its output.
fn goondan(arguments: &[&str], state: &Path) -> String {
    printed(support::goondan().args(arguments).arg("--state-root").arg(state))
}

/// Two turns, with 2000 and 3000 tokens of requests, half of them cached.
#[test]
fn the_tokens_and_costs_of_all_turns_of_an_instance_are_added_up() {
    let (root, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let example = checkout().join("examples/openai-compatible/goondan.yaml");
    let own = "  model: my-model\n  prices: { input: 2, output: 10, cachedInput: 1 }\n  cassette: { match: order }";
    let bundle = fs::read_to_string(example).unwrap().replacen("  model: my-model", own, 1);
    fs::write(root.path().join("goondan.yaml"), bundle).unwrap();
    fs::create_dir(root.path().join("cassettes")).unwrap();
    let path = root.path().to_str().unwrap();
    for prompt in [2000, 3000] {
        let usage = json!({ "prompt_tokens": prompt, "completion_tokens": 100, "total_tokens": prompt + 100,
                            "prompt_tokens_details": { "cached_tokens": prompt / 2 },
                            "completion_tokens_details": { "reasoning_tokens": 30 } });
        let delta = json!({ "role": "assistant", "content": "Yes." });
        let chunk = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": "stop" }], "usage": usage });
        let request = json!({ "path": "/v1/chat/completions", "headers": {}, "body": {} });
        let response = json!({ "status": 200, "headers": {}, "events": [[0, "", chunk.to_string()]] });
        let exchange = json!({ "request": request, "response": response });
        let cassette = format!("{}\n{exchange}\n", json!({ "cassette": 1, "goondan": "0.1.0" }));
        fs::write(root.path().join("cassettes/main.jsonl"), cassette).unwrap();
        goondan(&["run", path, "--cassettes", "replay", "--instance", "one", "--input", "Is it?"], state.path());
    }
    let shown = goondan(&["instance", "show", "assistant:one"], state.path());
    assert!(shown.contains("(together: 5000 tokens in and 200 out, $0.0095)"), "{shown}");
    let shown = goondan(&["instance", "show", "assistant:one", "--json"], state.path());
    let last: Value = serde_json::from_str(shown.lines().last().unwrap()).unwrap();
    let expected = json!({
        "promptTokens": 5000, "completionTokens": 200, "totalTokens": 5200, "cachedPromptTokens": 2500,
        "reasoningTokens": 60, "cost": 0.0095,
    });
    assert_eq!(last["instance"]["tokenUsage"], expected, "{last}");
}

#[test]
#[covers("ENV-01")]
fn keys_in_a_recording_are_a_hint_to_check() {
    let bundle = TempDir::new().unwrap();
    copy(&checkout().join("examples/openai"), bundle.path());
    let check = || printed(support::goondan().args(["check"]).arg(bundle.path()));
    assert!(!check().contains("hint: the cassette"), "{}", check());
    let cassette = bundle.path().join("cassettes/main.jsonl");
    let recorded = fs::read_to_string(&cassette).unwrap();
    let encoded = "Z2hwX2ExYjJjM2Q0ZTVmNmc3aDhpOQ==";
    fs::write(&cassette, recorded.replace("What are you?", &format!("What are you? {encoded}"))).unwrap();
    let found =
        "cassettes/main.jsonl:2:1: hint: the cassette has a secret: in an encoded text, `ghp_…` looks like a key";
    assert!(check().contains(found), "{}", check());
}

/// Copies a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copy_to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &copy_to)
        } else {
            fs::copy(entry.path(), copy_to).map(drop).unwrap()
        }
    }
}
