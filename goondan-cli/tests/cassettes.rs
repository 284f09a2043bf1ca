//! `goondan run --cassettes`: the examples with real models, without key and network.

#![cfg(feature = "models")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use goondan_covers::covers;
use serde_json::Value;
use tempfile::TempDir;

const EXAMPLES: [&str; 6] = ["anthropic", "gemini", "ollama", "openai", "openai-compatible", "openrouter"];

/// Runs a turn of a new conversation with an example, without any key.
fn run(example: &str, arguments: &[&str], variable: &str) -> Output {
    let state = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_goondan"));
    command
        .env_clear()
        .env("GOONDAN_CASSETTES", variable)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    command.args(["run", &format!("examples/{example}"), "--json", "--state-root"]).arg(state.path());
    command.args(arguments).output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Replaces what is another one in each run: ids and times.
fn without_ids(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| {
            let differs = name.ends_with("Id") || ["timestamp", "duration"].contains(&&**name);
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
