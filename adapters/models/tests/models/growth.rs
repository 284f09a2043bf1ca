//! What the process grows by while an answer arrives that is much too large.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use goondan::{Agent, Bundle};
use goondan_core::ErrorCode;
use goondan_covers::covers;
use goondan_growth::{Case, OF_DOCUMENTS, check, of_bytes};
use goondan_models::wire::Anthropic;
use goondan_models::{Cassette, ModelConfig, providers};

use crate::support::config;

/// The limit, as far as the test is concerned.
const LIMIT: usize = 4 << 20;

/// What begins an answer, and what is repeated in it.
const ANSWERS: [(&str, &str, &str); 6] = [
    (
        "text",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words \n of an answer"}}"#,
    ),
    ("event", r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""#, ""),
    ("comments", "", ":"),
    (
        "citations",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"citation":[1,2,[],[],3,4,5,6,[],[],[],[],{},{},{}]}}"#,
    ),
    ("parts", "", r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"new","a":[1,2,3,4,5]}}"#),
    ("values", r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"new","a":["#, "1,"),
];

/// Answers a request to `/<what>/<bytes>/…` with so many bytes of such an answer.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = vec![0; 1 << 16];
    let length = stream.read(&mut request)?;
    let request = String::from_utf8_lossy(&request[..length]);
    let mut path = request.split(' ').nth(1).unwrap().split('/').skip(1);
    let (what, bytes) = (path.next().unwrap(), path.next().unwrap().parse::<usize>().unwrap());
    let (_, start, repeated) = ANSWERS.into_iter().find(|answer| answer.0 == what).unwrap();
    let end = if ["event", "values"].contains(&what) { "" } else { "\n\n" };
    let piece = format!("{}{end}", if repeated.is_empty() { "xxxx" } else { repeated }).repeat(1000);
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{start}{end}")?;
    for _ in 0..bytes.div_ceil(piece.len()) {
        stream.write_all(piece.as_bytes())?;
    }
    Ok(())
}

/// Returns the URL of a server in a thread of this process, which answers until the process ends.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that has read enough closes the connection.
            thread::spawn(move || _ = answer(stream.unwrap()));
        }
    });
    url
}

/// Returns the config of a model that gets the answer of the case, or an empty one.
fn model(case: &Case) -> ModelConfig {
    let bytes = if case.passed_on { case.times * LIMIT } else { 0 };
    let mut config = config(&format!("{}/{bytes}", case.prepared));
    config.answer.max_bytes = LIMIT;
    config
}

/// Runs a turn whose model fails.
async fn turn(case: &Case, agent: goondan::agent::AgentBuilder) {
    let agent = agent.build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    case.begin();
    let error = instance.run("hi").await.unwrap_err();
    let expected = if case.passed_on { ErrorCode::MODEL_ANSWER } else { ErrorCode::MODEL_NETWORK };
    assert_eq!(*error.code(), expected, "{error}");
}

#[tokio::test]
#[covers("SIZE-01")]
async fn an_answer_that_is_too_large() {
    for (what, ..) in ANSWERS {
        let test = "growth::an_answer_that_is_too_large";
        check(
            test,
            of_bytes(LIMIT),
            || format!("{}/{what}", server()),
            async |case| {
                let model = model(case).model(&providers::ANTHROPIC, Anthropic).unwrap();
                turn(case, Agent::builder("assistant").model(model)).await;
            },
        )
        .await;
    }
}

#[tokio::test]
#[covers("SIZE-01")]
async fn an_answer_that_is_recorded() {
    for what in ["text", "event", "comments"] {
        let test = "growth::an_answer_that_is_recorded";
        check(
            test,
            of_bytes(LIMIT),
            || format!("{}/{what}", server()),
            async |case| {
                let directory = tempfile::tempdir().unwrap();
                let cassette = Cassette::record(directory.path().join("a.jsonl")).unwrap();
                let model = model(case).model(&providers::ANTHROPIC, Anthropic).unwrap();
                turn(case, Agent::builder("assistant").model(model.with_cassette(cassette))).await;
            },
        )
        .await;
    }
}

/// The files of a bundle: their names, the largest size, and the spec of a model that may name them.
const FILES: [(&str, u64, &str); 3] = [
    ("a.jsonl", 256 << 20, "{ provider: ollama, model: m, cassette: { mode: replay, file: a.jsonl } }"),
    ("script.yaml", 1 << 20, "{ provider: scripted, script: script.yaml }"),
    ("more.yaml", 1 << 20, "{ provider: ollama, model: m }"),
];

#[tokio::test]
#[covers("SIZE-01")]
async fn a_file_of_a_bundle() {
    for (name, ..) in FILES {
        check(
            "growth::a_file_of_a_bundle",
            OF_DOCUMENTS,
            || name.to_owned(),
            async |case| {
                let (name, limit, spec) = FILES.into_iter().find(|(name, ..)| *name == case.prepared).unwrap();
                let directory = tempfile::tempdir().unwrap();
                let document = |kind: &str, spec: &str| {
                    format!("apiVersion: goondan.ai/v1\nkind: {kind}\nmetadata: {{ name: main }}\nspec: {spec}\n---\n")
                };
                let bundle = document("Model", spec) + &document("Agent", "{ model: Model/main }");
                fs::write(directory.path().join("goondan.yaml"), bundle).unwrap();
                let mut file = BufWriter::new(File::create(directory.path().join(name)).unwrap());
                let line = "- kind: [goondan.ai/v1]\n";
                let lines =
                    if case.passed_on { case.times as u64 * (limit.min(1 << 20) / line.len() as u64) } else { 1 };
                (0..=lines).for_each(|_| file.write_all(line.as_bytes()).unwrap());
                let file = file.into_inner().unwrap();
                if case.passed_on && limit > 1 << 20 {
                    // The rest of it is a hole.
                    file.set_len(case.times as u64 * limit).unwrap();
                }
                case.begin();
                let errors = Bundle::check(directory.path()).err().map(|errors| errors.to_string()).unwrap_or_default();
                assert_eq!(
                    errors.contains(" is larger than ") || errors.contains("file is larger"),
                    case.passed_on,
                    "{errors}"
                );
            },
        )
        .await;
    }
}
