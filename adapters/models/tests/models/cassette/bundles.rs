//! Bundles whose models have cassettes: the examples, and one whose model changes in the middle of a conversation.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use goondan::model::CassetteMode;
use goondan::store::{FileStore, MemoryStore};
use goondan::{Bundle, ErrorCode};
use goondan_covers::covers;
// The bundles of the examples name it.
use message_window as _;
use serde_json::{Value, json};

use super::answers::Api;
use super::lines;
use crate::support::{Reply, Server};

/// The folders of real models, what they speak, and what their address has after the host.
const EXAMPLES: [(&str, Api, &str); 7] = [
    ("anthropic", Api::Anthropic, ""),
    ("bedrock", Api::Converse, ""),
    ("openai", Api::Responses, "/v1"),
    ("gemini", Api::Gemini, ""),
    ("ollama", Api::Chat, "/v1"),
    ("openrouter", Api::Chat, "/api/v1"),
    ("openai-compatible", Api::Chat, "/v1"),
];

/// What is said in the examples.
const CONVERSATION: [(&str, &str, [&str; 2]); 2] = [
    ("Hello! What are you?", "A greeting.", ["Hello! I am an assistant ", "in a recording."]),
    ("What did I ask?", "The first message.", ["You asked ", "what I am."]),
];

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Runs a turn. The last part of an answer of Gemini may be an empty text with a signature, on a line of its own.
async fn answer(instance: &goondan::Instance, input: &str) -> String {
    instance.run(input).await.unwrap().text().trim_end().to_owned()
}

/// Holds the conversation with the bundle in a directory, and returns the answers.
async fn converse(root: &Path, mode: CassetteMode) -> Vec<String> {
    let agents = Bundle::reader().cassettes(mode).load(root).unwrap().build(MemoryStore::new()).await.unwrap();
    let agent = agents.get("assistant").unwrap();
    let instance = agent.instance("one").await.unwrap();
    let mut answers = Vec::new();
    for (input, ..) in CONVERSATION {
        answers.push(answer(&instance, input).await);
    }
    instance.close().await.unwrap();
    answers
}

/// Removes what differs between two recordings of the same: times, the version of goondan, and names of instances.
fn without_times(mut lines: Vec<Value>) -> Vec<Value> {
    lines[0]["goondan"] = Value::Null;
    for line in &mut lines[1..] {
        line["request"]["body"].as_object_mut().unwrap().remove("prompt_cache_key");
        line["response"]["events"].as_array_mut().unwrap().iter_mut().for_each(|event| event[0] = 0.into());
    }
    lines
}

/// `BLESS=1` records the cassettes of the examples anew.
#[tokio::test]
async fn the_cassettes_of_the_examples_are_what_recording_writes() {
    for (name, api, base) in EXAMPLES {
        let reply = if api == Api::Converse { Reply::framed } else { Reply::events };
        let server = Server::start(CONVERSATION.map(|(_, thought, text)| reply(&api.stream(thought, text)))).await;
        let root = tempfile::tempdir().unwrap();
        let bundle = fs::read_to_string(example(name).join("goondan.yaml")).unwrap();
        // With a key of its own, and the server instead of the provider.
        let own =
            |line: &&str| !["apiKey:", "valueFrom:", "env:", "baseUrl:"].iter().any(|key| line.trim().starts_with(key));
        let bundle = bundle.lines().filter(own).collect::<Vec<_>>().join("\n");
        let model = format!("  baseUrl: {}{base}\n  apiKey: key-for-tests-4711\n  model:", server.url());
        fs::write(root.path().join("goondan.yaml"), bundle.replacen("  model:", &model, 1)).unwrap();
        let answers = converse(root.path(), CassetteMode::Record).await;
        assert_eq!(answers, CONVERSATION.map(|(.., text)| text.concat()), "{name}");

        let (recorded, kept) = ("cassettes/main.jsonl", example(name).join("cassettes/main.jsonl"));
        let recorded = root.path().join(recorded);
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(kept.parent().unwrap()).unwrap();
            fs::copy(&recorded, &kept).unwrap();
        }
        assert_eq!(without_times(lines(&recorded)), without_times(lines(&kept)), "BLESS=1 records {name} anew");
    }
}

#[tokio::test]
async fn the_examples_run_from_their_cassettes_without_key_and_network() {
    for (name, ..) in EXAMPLES {
        for _ in 0..2 {
            let answers = converse(&example(name), CassetteMode::Replay).await;
            assert_eq!(answers, CONVERSATION.map(|(.., text)| text.concat()), "{name}");
        }
        let agents = Bundle::reader().cassettes(CassetteMode::Replay).load(example(name)).unwrap();
        let agents = agents.build(MemoryStore::new()).await.unwrap();
        let error = agents.get("assistant").unwrap().instance("one").await.unwrap().run("Hullo!").await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::MODEL_CASSETTE, "{error}");
        assert!(error.message().contains("\"Hullo!\"") || error.message().contains("…"), "{error}");
    }
}

/// The documents of a bundle beside its model.
const REST: &str = "
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: assistant }
spec: { model: Model/main, system: Be brief. }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: it }
spec: { agents: [{ ref: Agent/assistant }], entryAgent: Agent/assistant }
";

/// One conversation, in which each turn has another model. Returns the answers, and the bundles without their models.
async fn switched(root: &Path, models: &[(&str, String)], mode: CassetteMode) -> Vec<String> {
    let state = tempfile::tempdir().unwrap();
    let mut answers = Vec::new();
    for (name, spec) in models {
        let model = format!("apiVersion: goondan.ai/v1\nkind: Model\nmetadata: {{ name: main }}\nspec: {spec}\n");
        fs::write(root.join("goondan.yaml"), model + REST).unwrap();
        let bundle = Bundle::reader().cassettes(mode).load(root).unwrap();
        let agents = bundle.build(FileStore::open(state.path()).unwrap()).await.unwrap();
        let instance = agents.get("assistant").unwrap().instance("one").await.unwrap();
        answers.push(answer(&instance, &format!("Are you {name}?")).await);
        instance.close().await.unwrap();
    }
    answers
}

#[tokio::test]
async fn one_bundle_is_switched_between_four_providers_and_a_script_by_its_model_alone() {
    let providers = [
        ("anthropic", Api::Anthropic),
        ("openai", Api::Responses),
        ("gemini", Api::Gemini),
        ("ollama", Api::Chat),
        // Back to the first one: its reasoning is still there.
        ("anthropic", Api::Anthropic),
    ];
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("script.yaml"), "- say: I am scripted.\n").unwrap();
    let scripted = ("scripted", "{ provider: scripted, script: ./script.yaml }".to_owned());
    let mut servers = Vec::new();
    let (mut asked, mut played, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (turn, (name, api)) in providers.into_iter().enumerate() {
        let answer = format!("I am {name}, in turn {turn}.");
        let server = Server::start([Reply::events(&api.stream("Who?", ["", &answer]))]).await;
        let common = format!("provider: {name}, model: m, cassette: {{ file: ./{name}-{turn}.jsonl }}");
        let url = format!("{}{}", server.url(), api.base());
        asked.push((name, format!("{{ {common}, baseUrl: '{url}', apiKey: key-for-tests-4711 }}")));
        played.push((name, format!("{{ {common}, apiKey: {{ valueFrom: {{ env: GOONDAN_ABSENT_KEY }} }} }}")));
        expected.push(answer);
        servers.push(server);
        if turn == 1 {
            asked.push(scripted.clone());
            played.push(scripted.clone());
            expected.push("I am scripted.".to_owned());
        }
    }
    assert_eq!(switched(root.path(), &asked, CassetteMode::Record).await, expected);
    let requests: Vec<_> = servers.iter().map(|server| server.requests()[0].body.to_string()).collect();
    for (turn, request) in requests.iter().enumerate() {
        let earlier = expected.iter().filter(|answer| request.contains(&***answer)).count();
        assert_eq!(earlier, if turn < 2 { turn } else { turn + 1 }, "each one reads the whole conversation: {request}");
    }
    let signed = json!("ZXhhbXBsZQ==").to_string();
    assert_eq!(requests.iter().map(|body| body.matches(&signed).count()).collect::<Vec<_>>(), [0, 0, 0, 0, 1]);
    drop(servers);
    assert_eq!(switched(root.path(), &played, CassetteMode::Replay).await, expected);
}

/// Returns the only error of a bundle whose model has this spec.
fn error(spec: &str, mode: CassetteMode, prepare: impl FnOnce(&Path)) -> String {
    let root = tempfile::tempdir().unwrap();
    prepare(root.path());
    let model = format!("apiVersion: goondan.ai/v1\nkind: Model\nmetadata: {{ name: main }}\nspec: {spec}\n");
    fs::write(root.path().join("goondan.yaml"), model + REST).unwrap();
    let errors = Bundle::reader().cassettes(mode).check(root.path()).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors}");
    assert!(errors.first().place.unwrap().line == 4, "{errors}");
    errors.to_string()
}

#[test]
#[covers("SIZE-01")]
fn mistakes_in_the_settings_of_a_cassette_are_told_when_the_bundle_is_checked() {
    let spec = |cassette: &str| format!("{{ provider: ollama, model: m, cassette: {cassette} }}");
    let text = error(&spec("{}"), CassetteMode::Replay, |_| ());
    assert!(text.contains("E_MODEL_CASSETTE") && text.contains("there is no cassette `"), "{text}");
    assert!(text.contains("cassettes/main.jsonl` ") || text.contains("cassettes/main.jsonl`\n"), "{text}");
    let text = error(&spec("{ redact: ['('] }"), CassetteMode::Record, |_| ());
    assert!(text.contains("no regular expression"), "{text}");
    let text = error(&spec("{ file: ../a.jsonl }"), CassetteMode::Record, |_| ());
    assert!(text.contains("a path below the bundle's directory"), "{text}");
    let text = error(&spec("{ mod: replay }"), CassetteMode::Off, |_| ());
    assert!(text.contains("`mod`") && text.contains("`mode`"), "{text}");
    // Nothing of the bundle is overwritten.
    let text = error(&spec("{ file: goondan.yaml, mode: record }"), CassetteMode::Record, |_| ());
    assert!(text.contains("is no cassette"), "{text}");
    #[cfg(unix)]
    {
        let elsewhere = tempfile::tempdir().unwrap();
        let link = |root: &Path| std::os::unix::fs::symlink(elsewhere.path(), root.join("cassettes")).unwrap();
        let text = error(&spec("{}"), CassetteMode::Record, link);
        assert!(text.contains("leads out of the bundle through a link"), "{text}");
        // What would be read without an end.
        for mode in [CassetteMode::Replay, CassetteMode::Record, CassetteMode::Auto] {
            let zero = |root: &Path| std::os::unix::fs::symlink("/dev/zero", root.join("a.jsonl")).unwrap();
            let text = error(&spec("{ file: a.jsonl }"), mode, zero);
            assert!(text.contains("leads out of the bundle through a link"), "{text}");
            let pipe =
                |root: &Path| assert!(Command::new("mkfifo").arg(root.join("a.jsonl")).status().unwrap().success());
            let text = error(&spec("{ file: a.jsonl }"), mode, pipe);
            assert!(text.contains("a.jsonl` cannot be read: it is no regular file"), "{text}");
            let large = |root: &Path| File::create(root.join("a.jsonl")).unwrap().set_len(300 << 20).unwrap();
            let text = error(&spec("{ file: a.jsonl }"), mode, large);
            assert!(text.contains("a.jsonl` cannot be read: it is larger than 268435456 bytes"), "{text}");
        }
    }
}
