//! No key is in a cassette, also if the server repeats all that it was sent.

use std::fs;
use std::sync::LazyLock;

use goondan_core::{ErrorCode, Secret};
use goondan_covers::covers;
use goondan_models::wire::Anthropic;
use goondan_models::{Cassette, providers};
use goondan_runtime::CassetteMode;
use serde_json::{Value, json};

use super::{Tape, says, user};
use crate::support::{Asked, Played, Reply, Sent, Server, ask, config, told};

const KEY: &str = "sk-ant-test-cassette-0123456789";
const TOKEN: &str = "gateway token \"quoted\" 4711";

/// A model with keys that asks `url` and records.
fn model(tape: &Tape, url: &str) -> goondan_models::HttpModel<Anthropic> {
    let mut config = config(url);
    config.api_key = Some(Secret::new(KEY));
    // Headers are plain texts, so the program keeps the `Secret`, as a bundle does.
    static GATEWAY: LazyLock<Secret> = LazyLock::new(|| Secret::new(TOKEN));
    config.headers.insert("x-gateway".to_owned(), GATEWAY.expose().to_owned());
    config.retries.max = 2;
    config.model(&providers::ANTHROPIC, Anthropic).unwrap().with_cassette(Cassette::record(tape.path()).unwrap())
}

#[tokio::test]
#[covers("MODEL-04")]
async fn keys_that_a_server_repeats_are_not_recorded() {
    let echo = format!("x-api-key: {KEY}\nx-gateway: {TOKEN}");
    let failure = Reply::json("529 Busy", &json!({ "error": { "message": echo, "type": KEY } }))
        .header("x-api-key", KEY)
        .header("request-id", KEY)
        .header("retry-after-ms", "1");
    let answer = Reply::events(&says(&echo)).header("set-cookie", KEY).header("x-gateway", TOKEN);
    let server = Server::start([failure, answer.header("x-request-id", &format!("id of {KEY}"))]).await;
    let tape = Tape::new();
    let asked = Asked { system: Some("The key is sk-ant-test-cassette-0123456789."), ..user(&echo) };
    let asked = asked.options(json!({ "provider": { "metadata": { KEY: TOKEN } } }));
    let answer = told(&model(&tape, server.url()), &asked).await.0.unwrap();
    assert!(answer.to_text().contains(KEY), "what the model said is not changed");
    assert_eq!(server.requests()[1].header("x-api-key"), Some(KEY));
    assert!(server.requests()[1].body.to_string().contains(KEY));

    let text = fs::read_to_string(tape.path()).unwrap();
    for secret in [KEY, TOKEN, "0123456789", "4711", "x-gateway\":", "x-api-key\":", "set-cookie"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert!(text.contains("x-api-key: ***"), "{text}");
    let lines = tape.lines();
    assert_eq!(lines[2]["response"]["headers"]["x-request-id"], "id of ***");
    assert_eq!(lines[2]["request"]["body"]["metadata"], json!({ "***": "***" }));
    // The masked recording answers the same request by a model without keys, as long as the key is masked.
    let _key = Secret::new(KEY);
    let played = told(&tape.playing().0, &asked).await.0.unwrap();
    assert_eq!(played.to_text(), "x-api-key: ***\nx-gateway: ***");
}

async fn refused(stream: &str, asked: &Asked) -> String {
    let tape = Tape::new();
    let sent = Sent::to([Played::events(stream)]);
    let model = tape.recording(sent.clone());
    let error = told(&model, asked).await.0.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_CASSETTE, "{error}");
    assert!(!tape.path().exists());
    // A recording with a gap is of no use.
    let error = ask(&model).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_CASSETTE, "{error}");
    assert_eq!(sent.bodies().len(), 1);
    error.message().into_owned()
}

/// One for each service, and for each place in which keys of others are.
const KEYS: [&str; 28] = [
    "sk-proj-a1b2c3d4e5f6g7h8i9",
    "AIzaSyA1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q",
    "ya29.a1b2c3d4e5f6g7h8i9",
    "gsk_a1b2c3d4e5f6g7h8i9",
    "xai-a1b2c3d4e5f6g7h8i9",
    "ghp_a1b2c3d4e5f6g7h8i9",
    "github_pat_11A1b2c3d4e5f6g7h8i9_a1",
    "glpat-a1b2c3d4e5f6g7h8i9j0",
    "AKIAIOSFODNN7EXAMPLE1",
    "aws_secret_access_key = a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6g7h8i9j0",
    "AccountKey=a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6g7h8==",
    "xoxb-1234567890-a1b2c3d4",
    "https://hooks.slack.com/services/T1234/B1234/a1b2c3d4",
    "sk_live_a1b2c3d4e5f6g7h8i9j0",
    "SK0123456789abcdef0123456789abcdef",
    "SG.a1b2c3d4e5f6g7h8i9.a1b2c3d4e5f6g7h8i9",
    "hf_a1b2c3d4e5f6g7h8i9",
    "npm_a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6g7h8",
    "pypi-AgEIcHlwaS5vcmcCJDk5",
    "dckr_pat_a1b2c3d4e5f6g7h8i9",
    "dop_v1_0123456789abcdef0123456789abcdef",
    "lin_api_a1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6g7h8",
    "123456789:AAa1b2c3d4e5f6g7h8i9j0a1b2c3d4e5f6g",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.a1b2c3d4e5f6",
    "Bearer a1b2c3d4e5f6g7h8i9",
    "Basic bWU6YTFiMmMzZDRlNWY2",
    "postgres://me:a1b2c3d4e5@db.example.com/main",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
];

/// Encodes a text in base64.
fn base64(text: &str) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(text)
}

#[tokio::test]
#[covers("ENV-01")]
async fn what_looks_like_a_key_is_not_recorded() {
    for key in KEYS {
        let message = refused(&says("hi"), &user(&format!("my key: {key}"))).await;
        assert!(message.contains("looks like a key") && message.contains("`redact`"), "{message}");
        assert!(!message.contains(&key[4..]), "{message}");
        let message = refused(&says(&format!("your key={key}.")), &user("hi")).await;
        assert!(message.contains("looks like a key"), "{message}");
        // As a server or a file encodes it.
        let encoded = format!("a file: {}", base64(&format!("key: {key}\n")));
        let message = refused(&says("hi"), &user(&encoded)).await;
        assert!(message.contains("in an encoded text") && message.contains("looks like a key"), "{message}");
    }
    let tape = Tape::new();
    let harmless = "task-management-for-all-of-us-2, sk-learn-for-the-rest-of-us, a bearer of good news, \
                    b64-sk-a1b2c3d4e5f6g7h8i9j0";
    told(&tape.recording(Sent::to([Played::events(&says(harmless))])), &user(harmless)).await.0.unwrap();
}

#[tokio::test]
#[covers("ENV-01")]
async fn a_key_of_the_program_is_not_recorded_in_another_form() {
    let key = "plum/jam+in four forms";
    let _secret = Secret::new(key);
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let url = key.replace('/', "%2F").replace('+', "%2b").replace(' ', "%20");
    let basic = format!("Authorization: {}", base64(&format!("me:{key}")));
    for form in [base64(key), base64(&format!("a{key}")), hex.to_uppercase(), hex, url, basic, base64(&base64(key))] {
        let message = refused(&says("hi"), &user(&format!("it is {form}."))).await;
        assert!(message.contains("a key of this program") && message.contains("`redact`"), "{form}: {message}");
        let message = refused(&says(&form), &user("hi")).await;
        assert!(message.contains("a key of this program"), "{form}: {message}");
    }
}

#[test]
#[covers("ENV-01")]
fn keys_in_a_recording_that_is_there_are_found() {
    let tape = Tape::new();
    let line = |text: &str| {
        let request = json!({ "path": "/v1/messages", "headers": {}, "body": { "text": text } });
        json!({ "request": request, "response": { "status": 200, "headers": {}, "body": "" } }).to_string()
    };
    let lines = ["{\"cassette\":1,\"goondan\":\"0.1.0\"}".to_owned(), line("hi"), line("ghp_a1b2c3d4e5f6g7h8i9")];
    fs::create_dir_all(tape.path().parent().unwrap()).unwrap();
    fs::write(tape.path(), lines.join("\n")).unwrap();
    assert_eq!(Cassette::keys_in(tape.path()), [(3, "`ghp_…` looks like a key of GitHub".to_owned())]);
    fs::write(tape.path(), "ghp_a1b2c3d4e5f6g7h8i9").unwrap();
    assert_eq!(Cassette::keys_in(tape.path()), [], "it is no cassette");
}

#[tokio::test]
#[covers("MODEL-04")]
async fn a_secret_that_is_streamed_in_pieces_is_not_recorded() {
    let _secret = Secret::new("plum-jam-in-pieces");
    let whole = says("plum-jam-in-pieces");
    let delta: Vec<&str> = whole.split_inclusive("\n\n").collect();
    let pieces = |texts: &[&str]| {
        let deltas: String = texts.iter().map(|text| delta[2].replace("plum-jam-in-pieces", text)).collect();
        [delta[0], delta[1], &deltas, delta[3], delta[4]].concat()
    };
    for texts in [&["plum-", "jam-", "in-pieces"][..], &["my sk-a1b2c3", "d4e5f6g7h8i9"]] {
        let message = refused(&pieces(texts), &user("hi")).await;
        assert!(message.contains("in pieces") && !message.contains("plum"), "{message}");
    }
}

#[tokio::test]
async fn patterns_of_the_bundle_are_redacted_in_recording_and_in_playing() {
    let tape = Tape::new();
    let settings = |redact: Value| serde_json::from_value(json!({ "redact": redact })).unwrap();
    let patterns = json!(["[a-z]+@example\\.com", "sk-[0-9a-z-]+"]);
    let cassette = Cassette::open(tape.path(), CassetteMode::Record, &settings(patterns.clone())).unwrap();
    let sent = Sent::to([Played::events(&says("Hello bob@example.com, sk-a1b2c3d4e5f6g7h8i9!"))]);
    let asked = user("I am bob@example.com");
    told(&tape.recording(sent).with_cassette(cassette), &asked).await.0.unwrap();
    let text = fs::read_to_string(tape.path()).unwrap();
    assert!(text.contains("I am ***") && text.contains("Hello ***, ***!") && !text.contains("bob"), "{text}");

    let cassette = Cassette::open(tape.path(), CassetteMode::Replay, &settings(patterns)).unwrap();
    let played = told(&super::player(&cassette), &user("I am eve@example.com")).await.0.unwrap();
    assert_eq!(played.to_text(), "Hello ***, ***!");

    let error = Cassette::open(tape.path(), CassetteMode::Record, &settings(json!(["("]))).unwrap_err();
    assert!(error.code() == "E_MODEL_CASSETTE" && error.message().contains("`(`"), "{error}");
}
