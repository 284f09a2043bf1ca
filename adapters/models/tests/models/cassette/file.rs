//! The file of a cassette: what it has, when it is written, and what is no cassette.

use std::fs::{self, OpenOptions};
use std::io::Write;

use goondan_core::ErrorCode;
use goondan_models::Cassette;
use goondan_models::cassette::CassetteConfig;
use goondan_runtime::CassetteMode;
use serde_json::json;

use super::{NoNetwork, Tape, player, says, user};
use crate::support::{Played, Sent, ask, told};

/// Records answers to `hello`.
async fn record(tape: &Tape, answers: &[&str]) {
    let model = tape.recording(Sent::to(answers.iter().map(|text| Played::events(&says(text)))));
    for _ in answers {
        ask(&model).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_has_one_exchange_that_people_can_read() {
    let tape = Tape::new();
    let body = json!({ "error": { "type": "overloaded_error", "message": "later" } });
    let failure = Played::json(529, &body).header("request-id", "req_1").header("x-other", "left out");
    let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n\
                  : a comment\n\ndata: {\"type\":\ndata: \"message_stop\"}\n\n";
    let answer = Played::events(stream).header("content-type", "text/event-stream");
    ask(&tape.recording(Sent::to([failure, answer]))).await.unwrap();
    let request = json!({
        "path": "/v1/messages",
        "headers": { "anthropic-version": "2023-06-01", "content-type": "application/json" },
        "body": tape.lines()[1]["request"]["body"],
    });
    let lines = [
        json!({ "cassette": 1, "goondan": env!("CARGO_PKG_VERSION") }),
        json!({ "request": request, "response": {
            "status": 529, "headers": { "request-id": "req_1" }, "body": body.to_string(),
        } }),
        json!({ "request": request, "response": {
            "status": 200, "headers": { "content-type": "text/event-stream" },
            "events": [[0, "message_start", "{\"type\":\"message_start\",\"message\":{}}"],
                       [0, "", "{\"type\":\n\"message_stop\"}"]],
        } }),
    ];
    assert_eq!(tape.lines(), lines);
    assert_eq!(request["body"]["messages"][0]["content"][0]["text"], "hello");
    ask(&tape.playing().0).await.unwrap();
}

#[tokio::test]
async fn an_exchange_is_in_the_file_as_soon_as_it_has_ended_and_a_torn_line_is_no_harm() {
    let tape = Tape::new();
    let model = tape.recording(Sent::to(["one", "two"].map(|text| Played::events(&says(text)))));
    for count in 1..=2 {
        ask(&model).await.unwrap();
        assert_eq!(tape.lines().len(), 1 + count);
    }
    drop(model);
    // A process that is killed while it writes.
    let whole = fs::read_to_string(tape.path()).unwrap();
    OpenOptions::new().append(true).open(tape.path()).unwrap().write_all(&whole.as_bytes()[40..400]).unwrap();
    let (model, cassette) = tape.playing();
    for text in ["one", "two"] {
        assert_eq!(ask(&model).await.unwrap().to_text(), text);
    }
    cassette.finish().unwrap();
    // What is added begins on a line of its own.
    let auto = Cassette::open(tape.path(), CassetteMode::Auto, &CassetteConfig::default()).unwrap();
    let model = tape.recording(Sent::to([Played::events(&says("three"))])).with_cassette(auto);
    told(&model, &user("another")).await.0.unwrap();
    assert_eq!(tape.lines().len(), 4);
}

#[tokio::test]
async fn an_earlier_recording_is_replaced_by_the_first_exchange_and_not_before() {
    let tape = Tape::new();
    record(&tape, &["one", "two"]).await;
    let before = fs::read(tape.path()).unwrap();
    let model = tape.recording(NoNetwork);
    ask(&model).await.unwrap_err();
    drop(model);
    assert_eq!(fs::read(tape.path()).unwrap(), before);
    record(&tape, &["three"]).await;
    assert_eq!(tape.lines().len(), 2);
    assert_eq!(ask(&tape.playing().0).await.unwrap().to_text(), "three");
    let names: Vec<_> = fs::read_dir(tape.path().parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["main.jsonl"]);
}

#[tokio::test]
async fn models_of_one_process_record_to_one_file_together() {
    let tape = Tape::new();
    let models = ["one", "two"].map(|text| tape.recording(Sent::to([Played::events(&says(text))])));
    for model in &models {
        ask(model).await.unwrap();
    }
    let (model, _) = tape.playing();
    assert_eq!([ask(&model).await.unwrap().to_text(), ask(&model).await.unwrap().to_text()], ["one", "two"]);
}

#[tokio::test]
async fn a_file_of_another_process_that_records_is_left_alone() {
    let tape = Tape::new();
    record(&tape, &["one"]).await;
    // A lock belongs to an open file, whichever process has it.
    let other = fs::File::open(tape.path()).unwrap();
    other.lock().unwrap();
    let model = tape.recording(Sent::to([Played::events(&says("two"))]));
    for _ in 0..2 {
        let error = ask(&model).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::MODEL_CASSETTE);
        assert!(error.message().contains("another process records to it"), "{error}");
    }
    assert_eq!(ask(&tape.playing().0).await.unwrap().to_text(), "one");
}

#[test]
fn what_is_no_cassette_is_refused_and_not_overwritten() {
    let tape = Tape::new();
    let error = Cassette::replay(tape.path()).unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_CASSETTE);
    assert!(error.message().starts_with("there is no cassette `"), "{error}");
    assert!(error.suggestion().unwrap().contains("--cassettes record"));
    fs::create_dir(tape.path().parent().unwrap()).unwrap();
    for (text, message) in [
        ("kind: Agent\n", "is no cassette"),
        ("", "is no cassette"),
        ("{\"cassette\":2,\"goondan\":\"9.1.0\"}\n", "has version 2, and this program reads 1: goondan 9.1.0"),
        ("{\"cassette\":1,\"goondan\":\"0.1.0\"}\n{}\n", "line 2 of the cassette"),
    ] {
        fs::write(tape.path(), text).unwrap();
        for mode in [CassetteMode::Record, CassetteMode::Replay, CassetteMode::Auto] {
            let error = Cassette::open(tape.path(), mode, &CassetteConfig::default()).unwrap_err();
            assert!(error.code() == "E_MODEL_CASSETTE" && error.message().contains(message), "{error}");
        }
        assert_eq!(fs::read_to_string(tape.path()).unwrap(), text);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let tape = Tape::new();
    record(&tape, &["one"]).await;
    assert_eq!(fs::metadata(tape.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_an_error_of_the_request() {
    let tape = Tape::new();
    fs::write(tape.path().parent().unwrap(), "a file instead of the directory").unwrap();
    let path = tape.path();
    // A file in a file cannot exist, and cannot be created.
    let error = match Cassette::record(&path) {
        Err(error) => error,
        Ok(cassette) => {
            let model = player(&cassette).with_transport(Sent::to([Played::events(&says("one"))]));
            ask(&model).await.unwrap_err()
        }
    };
    assert_eq!(*error.code(), ErrorCode::MODEL_CASSETTE, "{error}");
}
