//! REVIEW-01: the text of an answer is transformed piece by piece, and what is stored is what was streamed.

use std::sync::Arc;

use conformance_extensions::transformed::Transforming;
use goondan::agent::{AgentBuilder, TurnUpdate};
use goondan::conversation::{Message, Part};
use goondan::middleware::OnError;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::{Agent, BoxFuture, Result, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::Log;

/// A piece of an answer.
#[derive(Clone, Debug)]
enum Piece {
    Text(u32, String),
    Thought(u32, String),
    Call(u32),
    Restart,
}

use Piece::{Call, Restart, Text, Thought};

fn text(part: u32, text: &str) -> Piece {
    Text(part, text.to_owned())
}

/// A model that streams these pieces, and then answers with this content.
struct Streaming {
    pieces: Vec<Piece>,
    content: Value,
}

impl Model for Streaming {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, deltas: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            for piece in &self.pieces {
                deltas.send(match piece {
                    Text(part, text) => ModelDelta::Text { part: *part, text },
                    Thought(part, text) => ModelDelta::Reasoning { part: *part, text },
                    Call(part) => ModelDelta::ToolCall { part: *part, id: "1", name: "no__tool" },
                    Restart => ModelDelta::Restart { reason: "again", wait: None },
                });
                tokio::task::yield_now().await;
            }
            Ok(serde_json::from_value(json!({ "content": self.content }))?)
        })
    }
}

/// What there is to see of one turn.
struct Seen {
    answer: Result<String>,
    log: Vec<String>,
    /// The pieces, one line each.
    pieces: Vec<String>,
    messages: Vec<Arc<Message>>,
}

impl Seen {
    /// Returns the text that was told of a part, after the last restart.
    fn told(&self, part: u32) -> String {
        let since = self.pieces.iter().rposition(|piece| piece.starts_with("restart")).map_or(0, |at| at + 1);
        let start = format!("{part} ");
        self.pieces[since..].iter().filter_map(|piece| piece.strip_prefix(&start)).collect()
    }

    /// Returns the texts that are stored of the answer.
    fn stored(&self) -> Vec<&str> {
        fn text(part: &Part) -> Option<&str> {
            match part {
                Part::Text(text) => Some(&text.text),
                Part::Reasoning(thought) => Some(thought.text()),
                _ => None,
            }
        }
        self.messages[1].content().parts().iter().filter_map(text).collect()
    }
}

async fn run(pieces: Vec<Piece>, content: Value, log: &Log, extend: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Seen {
    let agent = extend(Agent::builder("assistant").model(Streaming { pieces, content }));
    let instance = agent.build().unwrap().instance("test").await.unwrap();
    let (mut turn, mut pieces) = (instance.run_stream("hello"), Vec::new());
    while let Some(update) = turn.next().await {
        match update {
            TurnUpdate::Text { part, text, .. } | TurnUpdate::Reasoning { part, text, .. } => {
                pieces.push(format!("{part} {text}"));
            }
            TurnUpdate::Restart { reason, .. } => pieces.push(format!("restart: {reason}")),
            _ => {}
        }
    }
    let answer = turn.finish().await.map(|turn| turn.text().into_owned());
    let messages = instance.messages().await.unwrap();
    instance.close().await.unwrap();
    Seen { answer, log: log.take(), pieces, messages }
}

/// Runs one turn with the extension once, and `config` beside its log.
async fn one(pieces: Vec<Piece>, content: Value, mut config: Value) -> Seen {
    let log = Log::new();
    config["log"] = json!(log);
    run(pieces, content, &log, |agent| agent.with::<Transforming>(config)).await
}

fn says(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

/// Cuts a text into pieces of so many characters.
fn cut(whole: &str, size: usize) -> Vec<Piece> {
    let chars: Vec<char> = whole.chars().collect();
    chars.chunks(size).map(|piece| text(0, &piece.iter().collect::<String>())).collect()
}

fn code() -> Value {
    json!({ "word": "4711", "by": "[code]" })
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn wherever_an_answer_is_cut_the_same_is_told_and_stored() {
    let whole = "Die Nummer für Ökonomen: 47114711, nicht 471; 4711";
    let expected = "Die Nummer für Ökonomen: [code][code], nicht 471; [code]";
    for size in 1..=whole.chars().count() {
        let seen = one(cut(whole, size), says(whole), code()).await;
        assert_eq!((seen.told(0).as_str(), seen.answer.as_deref().unwrap()), (expected, expected), "{size}");
        assert_eq!(seen.stored(), [expected]);
        assert!(seen.pieces.iter().all(|piece| !piece.contains("47114")), "{:?}", seen.pieces);
    }
    let seen = one(Vec::new(), says(whole), code()).await;
    assert_eq!((seen.told(0).as_str(), seen.pieces.len()), (expected, 1), "a model that does not stream");
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn a_word_over_a_hundred_pieces_does_not_leave_and_what_is_none_is_told_at_once() {
    let word = "x".repeat(100);
    let config = json!({ "word": word, "by": "-" });
    let whole = format!("a{word}b");
    let seen = one(cut(&whole, 1), says(&whole), config.clone()).await;
    assert_eq!(seen.pieces, ["0 a", "0 -", "0 b"]);
    let almost = format!("a{}b", &word[1..]);
    let seen = one(cut(&almost, 1), says(&almost), config.clone()).await;
    assert_eq!(seen.pieces, ["0 a".to_owned(), format!("0 {}b", &word[1..])], "held until it is no match");
    let long = "lorem ipsum ".repeat(90_000);
    let seen = one(cut(&long, 1000), says(&long), config).await;
    assert_eq!((seen.pieces.len(), seen.stored()[0].len()), (long.len().div_ceil(1000), long.len()));
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn what_is_kept_back_of_a_part_is_told_before_the_next_part() {
    let content = json!([
        { "type": "reasoning", "text": "hm 47" },
        { "type": "text", "text": "11 and 47" },
        { "type": "reasoning", "text": "11" },
        { "type": "text", "text": "done 4" },
    ]);
    let pieces = vec![
        Thought(0, "hm ".to_owned()),
        Thought(0, "47".to_owned()),
        text(1, "11 and "),
        text(1, "47"),
        Thought(2, "11".to_owned()),
        text(3, "done 4"),
    ];
    let seen = one(pieces, content, code()).await;
    assert_eq!(seen.pieces, ["0 hm ", "0 47", "1 11 and ", "1 47", "2 11", "3 done ", "3 4"]);
    assert_eq!(seen.stored(), ["hm 47", "11 and 47", "11", "done 4"]);
    let log = one(vec![text(0, "a"), text(0, "b"), Call(1), text(2, "c")], says("ab"), json!({})).await.log;
    assert_eq!(log, [r#"Text "a""#, r#"Text "b""#, "Text ends", r#"Text "c""#, "Text ends"]);
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn an_answer_that_begins_again_has_nothing_of_what_was_kept_back() {
    let pieces = vec![text(0, "it is 47"), Restart, text(0, "11 is "), text(0, "4711")];
    let seen = one(pieces, says("11 is 4711"), code()).await;
    assert_eq!(seen.pieces, ["0 it is ", "restart: again", "0 11 is ", "0 [code]"]);
    assert_eq!(seen.stored(), ["11 is [code]"]);
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn an_answer_with_other_text_than_its_pieces_is_told_again() {
    let seen = one(vec![text(0, "it is 4")], says("it is 4711"), code()).await;
    assert_eq!(seen.pieces[..2], ["0 it is ", "0 4"]);
    assert_eq!((seen.told(0), seen.stored()), ("it is [code]".to_owned(), vec!["it is [code]"]));
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn the_innermost_transformer_is_first_and_reviewers_get_the_whole() {
    let log = Log::new();
    let config = |word: &str, by: &str| json!({ "log": log, "word": word, "by": by, "reviews": true });
    let seen = run(cut("abc ab", 1), says("abc ab"), &log, |agent| {
        let agent = agent.with_named("outer", "transforming", config("xc", "z"));
        agent.with_named("inner", "transforming", config("ab", "x"))
    });
    let seen = seen.await;
    assert_eq!((seen.told(0).as_str(), seen.stored()), ("z x", vec!["z x"]));
    assert_eq!(seen.log, ["z x", "z x"]);
    let closure = json!({ "word": "!", "by": ".", "isClosure": true, "reviews": true });
    let seen = one(cut("oh! my!", 2), says("oh! my!"), closure).await;
    assert_eq!((seen.pieces.concat(), seen.log), ("0 oh0 . 0 my0 .".to_owned(), vec!["oh. my.".to_owned()]));
}

#[both_linkages]
#[covers("REVIEW-01", "FAIL-01")]
async fn a_transformer_that_fails_ends_the_answer_and_nothing_further_is_told() {
    for on_error in [OnError::Abort, OnError::Skip] {
        for (config, code) in [
            (json!({ "fail": "b" }), "E_BROKEN"),
            (json!({ "panic": "b" }), "E_EXT_PANIC"),
            (json!({ "failAtEnd": true }), "E_BROKEN"),
        ] {
            let log = Log::new();
            let mut config = config;
            config["log"] = json!(log);
            let seen = run(cut("abc", 1), says("abc"), &log, |agent| {
                agent.with::<Transforming>(config.clone()).on_error("transforming", on_error)
            });
            let seen = seen.await;
            let error = seen.answer.unwrap_err();
            assert_eq!((error.code().as_str(), error.part()), (code, Some("transformer of `step`")), "{config}");
            let told = if config.get("failAtEnd").is_some() { 3 } else { 1 };
            assert_eq!(seen.pieces.len(), told, "{config}: {:?}", seen.pieces);
            let not_streamed = json!([{ "type": "text", "text": "abc" }]);
            let seen = run(Vec::new(), not_streamed, &log, |agent| agent.with::<Transforming>(config)).await;
            assert!(seen.answer.is_err() && seen.pieces.is_empty());
        }
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn what_changes_loses_the_data_of_its_provider() {
    let provider = json!({ "api": "a", "model": "m", "rest": { "signature": "s" } });
    let content = json!([
        { "type": "reasoning", "text": "4711", "provider": provider },
        { "type": "reasoning", "text": "hm", "provider": provider },
        { "type": "text", "text": "4711", "provider": provider },
        { "type": "text", "text": "ok", "provider": provider },
    ]);
    for pieces in
        [Vec::new(), vec![Thought(0, "4711".to_owned()), Thought(1, "hm".to_owned()), text(2, "4711"), text(3, "ok")]]
    {
        let seen = one(pieces, content.clone(), code()).await;
        let parts: Vec<_> = seen.messages[1].content().parts().iter().map(|part| json!(part)).collect();
        let has_data: Vec<_> = parts.iter().map(|part| part.get("provider").is_some()).collect();
        assert_eq!(has_data, [false, true, false, true], "{parts:?}");
        assert_eq!(seen.stored(), ["[code]", "hm", "[code]", "ok"]);
    }
}

#[both_linkages]
#[covers("REVIEW-01", "PREP-01")]
async fn prepared_answers_are_transformed_and_late_transformers_change_nothing() {
    let seen =
        one(Vec::new(), says("unused"), json!({ "prepare": "it is 4711", "word": "4711", "by": "[code]" })).await;
    assert_eq!((seen.pieces.concat().as_str(), seen.stored()), ("0 it is [code]", vec!["it is [code]"]));
    let seen = one(cut("4711", 1), says("4711"), json!({ "late": true, "word": "4711", "by": "[code]" })).await;
    assert_eq!(seen.answer.unwrap(), "4711");
}
