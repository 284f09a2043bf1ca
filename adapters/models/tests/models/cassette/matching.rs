//! Which recorded exchange answers a request, and what is said about one that was not recorded.

use goondan_core::{ErrorCode, Result};
use goondan_covers::covers;
use goondan_models::Cassette;
use goondan_models::wire::Anthropic;
use goondan_runtime::CassetteMode;
use serde_json::{Value, json};

use super::{Tape, player, says, user};
use crate::support::{Asked, Played, Sent, ask, config, told};

/// Records answers to these questions.
async fn recorded(questions: &[&str]) -> Tape {
    let tape = Tape::new();
    let answers = questions.iter().map(|question| Played::events(&says(&format!("{question}!"))));
    let model = tape.recording(Sent::to(answers));
    for question in questions {
        told(&model, &user(question)).await.0.unwrap();
    }
    tape
}

async fn answer(model: &dyn goondan_runtime::Model, question: &str) -> Result<String> {
    told(model, &user(question)).await.0.map(|answer| answer.to_text().into_owned())
}

fn open(tape: &Tape, mode: CassetteMode, settings: Value) -> Cassette {
    Cassette::open(tape.path(), mode, &serde_json::from_value(settings).unwrap()).unwrap()
}

#[tokio::test]
#[covers("MODEL-04")]
async fn a_request_that_differs_is_an_error_that_names_the_difference_and_what_to_do() {
    let long = "Please tell me at length what there is to know of the weather in the city of ";
    let (recorded_one, asked) = (format!("{long}Seoul."), format!("{long}Busan."));
    let tape = recorded(&["hello", &recorded_one]).await;
    let (model, _) = tape.playing();
    let error = answer(&model, &asked).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_CASSETTE);
    assert!(!error.is_retryable());
    let message = error.message();
    let path = tape.path();
    assert!(message.starts_with(&format!("anthropic: the cassette `{}`: ", path.display())), "{message}");
    let text = "`/messages/0/content/0/text` is …ther in the city of Busan.\", \
                and …ther in the city of Seoul.\" in the recording";
    assert!(message.contains(text), "{message}");
    assert!(error.suggestion().unwrap().contains("--cassettes record"), "{error:?}");
    assert_eq!(error.details()["attempts"], 1);
    // Nothing was used up.
    assert_eq!(answer(&model, "hello").await.unwrap(), "hello!");
}

#[tokio::test]
async fn members_that_are_new_gone_or_of_another_model_are_named() {
    let tape = recorded(&["hello"]).await;
    let cassette = Cassette::replay(tape.path()).unwrap();
    let error = told(&player(&cassette), &user("hello").options(json!({ "temperature": 0.5 }))).await.0.unwrap_err();
    assert!(error.message().contains("`/temperature` is 0.5, and absent in the recording"), "{error}");
    let more =
        Asked::messages(json!([{ "role": "user", "content": "hello" }, { "role": "assistant", "content": "hi" },
                                      { "role": "user", "content": "and now?" }]));
    let error = told(&player(&cassette), &more).await.0.unwrap_err();
    assert!(error.message().contains("`/messages/1` is {"), "{error}");

    let mut other = config("https://gateway.example/anthropic");
    other.api_key = None;
    let other = other.model(&goondan_models::providers::ANTHROPIC, Anthropic).unwrap();
    let error = ask(&other.with_transport(super::NoNetwork).with_cassette(cassette)).await.unwrap_err();
    assert!(error.message().contains("it is for `/anthropic/v1/messages`, and the next one"), "{error}");
}

#[tokio::test]
#[covers("MODEL-04")]
async fn exchanges_are_played_once_each_and_those_left_are_an_error_in_the_end() {
    let tape = recorded(&["hello", "hello", "bye"]).await;
    let (model, cassette) = tape.playing();
    // Conversations can take turns.
    assert_eq!(answer(&model, "bye").await.unwrap(), "bye!");
    assert_eq!(answer(&model, "hello").await.unwrap(), "hello!");
    let error = cassette.finish().unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_CASSETTE);
    assert!(error.message().ends_with("has exchanges that were not played: 1"), "{error}");
    answer(&model, "hello").await.unwrap();
    cassette.finish().unwrap();
    let error = answer(&model, "hello").await.unwrap_err();
    assert!(error.message().contains("all exchanges have been played"), "{error}");
}

#[tokio::test]
async fn the_order_of_members_does_not_count_and_members_can_be_ignored() {
    let tape = Tape::new();
    let asked = |options: Value| user("hello").options(json!({ "provider": options }));
    let one = json!({ "metadata": { "user_id": "one", "team": { "a": 1, "b": 2 } }, "prompt_cache_key": "one" });
    let model = tape.recording(Sent::to([Played::events(&says("hi"))]));
    told(&model, &asked(one)).await.0.unwrap();

    let two = json!({ "prompt_cache_key": "two", "metadata": { "team": { "b": 2, "a": 1 }, "user_id": "two" } });
    told(&tape.playing().0, &asked(two)).await.0.unwrap();
    told(&tape.playing().0, &asked(json!({ "metadata": { "team": { "a": 1, "b": 2 } } }))).await.0.unwrap();

    let three = json!({ "metadata": { "user_id": "one", "team": { "a": 1, "b": 3 } } });
    let error = told(&tape.playing().0, &asked(three.clone())).await.0.unwrap_err();
    assert!(error.message().contains("`/metadata/team/b` is 3, and 2 in the recording"), "{error}");
    let ignoring = open(&tape, CassetteMode::Replay, json!({ "ignore": ["/metadata/team/b"] }));
    told(&player(&ignoring), &asked(three)).await.0.unwrap();
}

#[tokio::test]
async fn exchanges_can_be_played_in_their_order_whatever_is_asked() {
    let tape = recorded(&["one", "two"]).await;
    let model = player(&open(&tape, CassetteMode::Replay, json!({ "match": "order" })));
    assert_eq!(answer(&model, "four").await.unwrap(), "one!");
    assert_eq!(answer(&model, "three").await.unwrap(), "two!");
    let error = answer(&model, "two").await.unwrap_err();
    assert!(error.message().contains("all exchanges have been played"), "{error}");
}

#[tokio::test]
async fn auto_plays_what_is_there_and_records_what_is_not() {
    let tape = recorded(&["one", "two"]).await;
    let auto = || {
        let sent = Sent::to([Played::events(&says("three!"))]);
        let model = config("http://127.0.0.1:9").model(&goondan_models::providers::ANTHROPIC, Anthropic).unwrap();
        let cassette = open(&tape, CassetteMode::Auto, json!({}));
        (model.with_transport(sent.clone()).with_cassette(cassette), sent)
    };
    let (model, sent) = auto();
    for question in ["one", "three", "two"] {
        assert_eq!(answer(&model, question).await.unwrap(), format!("{question}!"));
    }
    assert_eq!(sent.bodies().len(), 1);
    assert_eq!(tape.lines().len(), 4);
    let (model, sent) = auto();
    assert_eq!(answer(&model, "three").await.unwrap(), "three!");
    assert_eq!(sent.bodies().len(), 0);
}
