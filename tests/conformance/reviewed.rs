//! REVIEW-01: a verdict on the model's answer comes before it is stored or acted upon.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use conformance_extensions::reviewed::Reviewing;
use goondan::agent::{AgentBuilder, TurnUpdate};
use goondan::conversation::Message;
use goondan::event::AgentEvent;
use goondan::middleware::OnError;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::store::MemoryStore;
use goondan::testing::time;
use goondan::{Agent, BoxFuture, ErrorCode, Result, Value, json};
use goondan_breaking::{Break, Breaking, GoesOn, Plan};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::Log;

/// What there is to see of one turn.
#[derive(Debug)]
struct Seen {
    answer: Result<String>,
    log: Vec<String>,
    /// The texts of the requests to the model.
    requests: Vec<Vec<String>>,
    messages: Vec<Arc<Message>>,
    /// The pieces of answers and the runtime events, one line each.
    updates: Vec<String>,
}

impl Seen {
    fn transcript(&self) -> Vec<String> {
        let line = |message: &Arc<Message>| format!("{:?}: {}", message.role(), message.text());
        self.messages.iter().map(line).collect()
    }

    /// Returns the code of the error that the turn has ended with.
    fn code(&self) -> &str {
        self.answer.as_ref().unwrap_err().code().as_str()
    }
}

/// Runs one turn of an agent whose model plays `script`.
async fn run(script: Vec<ScriptItem>, log: &Log, extend: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Seen {
    let dir = tempfile::tempdir().unwrap();
    let requests = dir.path().join("requests.jsonl");
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script).record(&requests));
    let instance = extend(agent).build().unwrap().instance("test").await.unwrap();
    let mut turn = instance.run_stream("hello");
    let mut updates = Vec::new();
    while let Some(update) = turn.next().await {
        updates.push(match update {
            TurnUpdate::Text { text, .. } => format!("text {text}"),
            TurnUpdate::Reasoning { text, .. } => format!("reasoning {text}"),
            TurnUpdate::ToolCall { name, .. } => format!("call {name}"),
            TurnUpdate::Restart { reason, .. } => format!("restart: {reason}"),
            TurnUpdate::Event(event) => event.name().to_owned(),
            _ => continue,
        });
    }
    let answer = turn.finish().await.map(|turn| turn.text().into_owned());
    let messages = instance.messages().await.unwrap();
    instance.close().await.unwrap();
    let requests = std::fs::read_to_string(&requests).unwrap_or_default();
    let texts = |line: &str| {
        let request: Value = serde_json::from_str(line).unwrap();
        let text =
            |message: &Value| message["content"].as_str().map_or_else(|| message["content"].to_string(), str::to_owned);
        request["messages"].as_array().unwrap().iter().map(text).collect()
    };
    Seen { answer, log: log.take(), requests: requests.lines().map(texts).collect(), messages, updates }
}

/// Runs one turn with the extension once, and `config` beside its log.
async fn one(script: Vec<ScriptItem>, config: Value) -> Seen {
    let log = Log::new();
    let mut config = config;
    config["log"] = json!(log);
    run(script, &log, |agent| agent.with::<Reviewing>(config)).await
}

fn rules(when: &str, then: Value) -> Value {
    json!([{ "when": when, "then": then }])
}

fn act(text: &str) -> ScriptItem {
    ScriptItem::call("reviewing__act", json!({ "text": text }))
}

fn pieces(text: &str) -> ScriptItem {
    ScriptItem::say(text).reasoning("they greet me").pieces(NonZeroU32::new(2).unwrap())
}

/// The two kinds of reviewers.
const KINDS: [bool; 2] = [false, true];

#[both_linkages]
#[covers("REVIEW-01")]
async fn a_reviewer_reads_the_whole_answer() {
    for waits in KINDS {
        let seen = one(vec![act("it"), ScriptItem::say("done")], json!({ "waits": waits })).await;
        assert_eq!(seen.answer.unwrap(), "done");
        let expected =
            [r#""" ["reviewing__act"] by the model, None, None"#, "acted: it", r#""done" [] by the model, None, None"#];
        assert_eq!(seen.log, expected);
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn the_stream_has_text_and_calls_only_after_the_verdict() {
    for waits in KINDS {
        let config = json!({ "waits": waits });
        let seen = one(vec![pieces("hello, who are you?")], config.clone()).await;
        let events = |text: &[&str]| {
            let all = ["turn.started", "step.started"].iter().chain(text).chain(&["step.completed", "turn.completed"]);
            all.map(|line| (*line).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(seen.updates, events(&["reasoning they g", "reasoning reet me", "text hello, who are you?"]));
        let held = one(vec![pieces("hello")], json!({ "waits": waits, "hold": true })).await;
        assert_eq!(held.updates, events(&["reasoning they greet me", "text hello"]), "the layer holds it too");
        let whole = one(vec![ScriptItem::say("hello").reasoning("hm")], config).await;
        assert_eq!(whole.updates, events(&["reasoning hm", "text hello"]), "of a model that does not stream");
        let after = json!({ "waits": waits, "afterStreaming": true });
        let seen = one(vec![pieces("hello")], after).await;
        let expected = ["reasoning they g", "reasoning reet me", "text he", "text llo"];
        assert_eq!(seen.updates, events(&expected));
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn a_replacement_is_what_is_stored_streamed_and_acted_upon() {
    for waits in KINDS {
        let write = rules("4711", json!({ "write": "[code]" }));
        let seen = one(vec![pieces("the code is 4711")], json!({ "waits": waits, "rules": write })).await;
        assert_eq!(seen.answer.as_ref().unwrap(), "the code is [code]");
        assert!(seen.updates.contains(&"text the code is [code]".to_owned()), "{:?}", seen.updates);
        assert!(!format!("{:?}", (&seen.updates, &seen.messages)).contains("4711"));
        assert_eq!(seen.messages[1].metadata()["replacedBy"], "reviewing");
        assert_eq!(seen.messages[1].content().parts().len(), 2, "the reasoning stays");

        let write = json!({ "waits": waits, "rules": rules("rm", json!({ "write": "ls" })) });
        let seen = one(vec![act("rm"), ScriptItem::say("done")], write).await;
        assert_eq!(seen.answer.as_ref().unwrap(), "done");
        assert!(seen.log.contains(&"acted: ls".to_owned()), "{:?}", seen.log);
        assert!(!format!("{:?}", seen.messages).contains("rm"), "{:?}", seen.messages);

        // A call in place of a text, and a text in place of a call.
        let call =
            json!([{ "type": "tool-call", "toolCallId": "", "toolName": "reviewing__act", "input": { "text": "it" } }]);
        let config = json!({ "waits": waits, "rules": rules("do it", json!({ "replace": call })) });
        let seen = one(vec![ScriptItem::say("do it"), ScriptItem::say("done")], config).await;
        assert_eq!(seen.answer.as_ref().unwrap(), "done");
        assert!(seen.log.contains(&"acted: it".to_owned()), "{:?}", seen.log);
        let config = json!({ "waits": waits, "rules": rules("it", json!({ "replace": "I do not act." })) });
        let seen = one(vec![act("it")], config).await;
        assert_eq!(seen.answer.as_ref().unwrap(), "I do not act.");
        assert!(!seen.log.contains(&"acted: it".to_owned()), "{:?}", seen.log);
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn of_a_refused_answer_nothing_is_stored_and_nothing_runs() {
    for waits in KINDS {
        for script in [pieces("the code is 4711"), act("4711")] {
            let config = json!({ "waits": waits, "rules": rules("4711", json!({ "refuse": "E_LEAK" })) });
            let seen = one(vec![script], config).await;
            assert_eq!(seen.code(), "E_LEAK");
            let error = seen.answer.as_ref().unwrap_err();
            let place = (error.extension().map(|name| name.as_str()), error.part());
            assert_eq!(place, (Some("reviewing"), Some("reviewer of `step`")), "{error:?}");
            assert_eq!(seen.transcript(), ["User: hello"]);
            assert!(!format!("{:?}", seen.updates).contains("4711"), "{:?}", seen.updates);
            assert!(!seen.log.iter().any(|line| line.starts_with("acted")), "{:?}", seen.log);
        }
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn what_was_told_before_the_verdict_is_taken_back() {
    for waits in KINDS {
        let config = |then: Value| json!({ "waits": waits, "afterStreaming": true, "rules": rules("4711", then) });
        let pieces = |text: &str| ScriptItem::say(text).pieces(NonZeroU32::MIN);
        let seen = one(vec![pieces("4711")], config(json!({ "refuse": "E_LEAK" }))).await;
        assert_eq!(seen.updates[2..4], ["text 4711", "restart: extension `reviewing`, reviewer of `step`: not this"],);
        let seen = one(vec![pieces("4711")], config(json!({ "write": "[code]" }))).await;
        let restart = "restart: the extension `reviewing` has replaced the answer";
        assert_eq!(seen.updates[2..5], ["text 4711", restart, "text [code]"]);
        let seen = one(vec![pieces("4711"), pieces("fine")], config(json!({ "askAgain": "without it" }))).await;
        assert_eq!(seen.updates[2..4], ["text 4711", "restart: without it"]);
        assert_eq!(seen.transcript(), ["User: hello", "Assistant: fine"]);
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn the_model_is_asked_again_with_words_that_no_later_request_has() {
    for waits in KINDS {
        let rules = json!([
            { "when": "sure", "then": { "askAgain": "Do not be sure." } },
            { "when": "certain", "then": { "askAgain": "Nor certain." } },
        ]);
        let script = vec![
            ScriptItem::say("I am sure"),
            ScriptItem::say("I am certain"),
            act("it"),
            ScriptItem::say("I think so"),
        ];
        let seen = one(script, json!({ "waits": waits, "rules": rules })).await;
        assert_eq!(seen.answer.as_ref().unwrap(), "I think so");
        assert_eq!(seen.requests[0], ["hello"]);
        assert_eq!(seen.requests[1], ["hello", "Do not be sure."]);
        assert_eq!(seen.requests[2], ["hello", "Do not be sure.", "Nor certain."]);
        assert_eq!(seen.requests[3].len(), 3, "the call and its result, without the words: {:?}", seen.requests[3]);
        assert!(!format!("{:?}{:?}", seen.messages, seen.updates).contains("sure"), "{seen:?}");
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn the_model_is_asked_again_so_often_and_no_more() {
    let again = |n: u32| json!({ "askAgainAtMost": [n, "again"] });
    for (then, requests) in [(json!({ "askAgain": "again" }), 3), (again(0), 1), (again(1), 2), (again(5), 6)] {
        let seen = one(vec![ScriptItem::say("no").repeat()], json!({ "rules": rules("no", then) })).await;
        assert_eq!(seen.code(), ErrorCode::MODEL_UNUSABLE.as_str());
        assert!(seen.answer.as_ref().unwrap_err().message().ends_with("asked again: again"), "{:?}", seen.answer);
        assert_eq!(seen.requests.len(), requests);
        assert_eq!(seen.transcript(), ["User: hello"]);
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn the_innermost_reviewer_is_first_and_the_next_one_gets_what_it_made() {
    let outer_and_inner = async |outer: Value, inner: Value, script: Vec<ScriptItem>| {
        let log = Log::new();
        run(script, &log, |agent| {
            agent.with_named("outer", "reviewing", json!({ "log": log, "rules": outer })).with_named(
                "inner",
                "reviewing",
                json!({ "log": log, "rules": inner, "waits": true }),
            )
        })
        .await
    };
    let write = |when: &str, text: &str| rules(when, json!({ "write": text }));
    let seen = outer_and_inner(write("b", "c"), write("a", "b"), vec![ScriptItem::say("a")]).await;
    assert_eq!(seen.answer.as_ref().unwrap(), "c");
    let texts: Vec<_> = seen.log.iter().map(|line| &line[..3]).collect();
    assert_eq!(
        (texts.as_slice(), &seen.messages[1].metadata()["replacedBy"]),
        (&[r#""a""#, r#""b""#][..], &json!("outer"))
    );
    let refuse = |when: &str, code: &str| rules(when, json!({ "refuse": code }));
    let seen = outer_and_inner(refuse("b", "E_OUTER"), write("a", "b"), vec![ScriptItem::say("a")]).await;
    assert_eq!((seen.code(), seen.transcript().len()), ("E_OUTER", 1), "replaced, then refused");
    let seen = outer_and_inner(refuse("a", "E_OUTER"), refuse("a", "E_INNER"), vec![ScriptItem::say("a")]).await;
    assert_eq!((seen.code(), seen.log.len()), ("E_INNER", 1), "the first one decides");
    let again = rules("a", json!({ "askAgain": "b, please" }));
    let seen = outer_and_inner(refuse("a", "E_OUTER"), again, vec![ScriptItem::say("a"), ScriptItem::say("b")]).await;
    assert_eq!(seen.answer.unwrap(), "b");
}

#[both_linkages]
#[covers("REVIEW-01", "PREP-01")]
async fn prepared_answers_are_reviewed() {
    let config = |then: Value| json!({ "prepare": "the code is 4711", "rules": rules("4711", then) });
    let seen = one(vec![], config(json!({ "write": "[code]" }))).await;
    assert_eq!(seen.answer.as_ref().unwrap(), "the code is [code]");
    let by = |key: &str| seen.messages[1].metadata()[key].clone();
    assert_eq!((by("preparedBy"), by("replacedBy")), (json!("reviewing"), json!("reviewing")));
    assert!(seen.log[0].contains("by reviewing"), "{:?}", seen.log);
    assert_eq!(one(vec![], config(json!({ "refuse": "E_LEAK" }))).await.code(), "E_LEAK");
    let seen = one(vec![ScriptItem::say("mine")], config(json!({ "askAgain": "without it" }))).await;
    assert_eq!((seen.answer.unwrap().as_str(), &seen.requests[0][1]), ("mine", &"without it".to_owned()));
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn a_reviewer_may_ask_another_model() {
    for (judgement, expected) in [("yes", "hello"), ("no", "E_JUDGED")] {
        let script = vec![ScriptItem::say("hello"), ScriptItem::say(judgement)];
        let seen = one(script, json!({ "waits": true, "rules": rules("hello", json!("judge")) })).await;
        assert_eq!(seen.answer.unwrap_or_else(|error| error.code().to_string()), expected);
        assert_eq!(seen.requests[1], ["judge: hello"]);
        assert!(seen.log.contains(&format!("judged: {judgement}")), "{:?}", seen.log);
    }
}

#[both_linkages]
#[covers("REVIEW-01", "FAIL-01")]
async fn a_reviewer_that_fails_is_as_its_layer() {
    time::pause();
    for waits in KINDS {
        for (how, code) in [("fail", "E_BROKEN"), ("panic", "E_EXT_PANIC"), ("hang", "E_EXT_RUNTIME")] {
            if how == "hang" && !waits {
                continue;
            }
            let log = Log::new();
            let config = json!({ "log": log, "waits": waits, "rules": rules("a", json!(how)) });
            if how != "hang" {
                let seen = run(vec![ScriptItem::say("a")], &log, |agent| agent.with::<Reviewing>(config.clone())).await;
                assert_eq!((seen.code(), seen.transcript().len()), (code, 1), "{how}");
                assert_eq!(seen.answer.unwrap_err().extension().unwrap(), "reviewing");
            }
            let seen = run(vec![ScriptItem::say("a")], &log, |agent| {
                agent.with::<Reviewing>(config).on_error("reviewing", OnError::Skip)
            });
            let seen = seen.await;
            assert_eq!(seen.answer.unwrap(), "a", "{how}");
            assert!(seen.updates.contains(&"extension.skipped".to_owned()), "{:?}", seen.updates);
        }
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn a_replacement_that_no_model_could_give_fails_the_step() {
    let thought = json!([{ "type": "reasoning", "text": "hm" }, { "type": "text", "text": "b" }]);
    let result = json!([{ "type": "tool-result", "toolCallId": "1", "toolName": "a__b", "output": { "type": "text", "value": "" } }]);
    let call = json!([{ "type": "tool-call", "toolCallId": "1", "toolName": "a__b", "input": 7 }]);
    for waits in KINDS {
        for (then, code) in [
            (json!({ "replace": "" }), "E_EXT_ANSWER"),
            (json!({ "replace": " \n" }), "E_EXT_ANSWER"),
            (json!({ "replace": result }), "E_EXT_ANSWER"),
            (json!({ "replace": call }), "E_EXT_ANSWER"),
            (json!("replaceDeep"), "E_EXT_ANSWER"),
            (json!({ "replace": thought }), "E_MESSAGE_PART"),
        ] {
            let config = json!({ "waits": waits, "rules": rules("a", then.clone()) });
            let seen = one(vec![ScriptItem::say("a")], config).await;
            assert_eq!((seen.code(), seen.transcript().len()), (code, 1), "{then}");
        }
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn a_reviewer_that_is_set_after_next_changes_nothing() {
    let seen =
        one(vec![ScriptItem::say("a")], json!({ "late": true, "rules": rules("a", json!({ "refuse": "E_A" })) })).await;
    assert_eq!(seen.answer.unwrap(), "a");
    assert!(seen.log.is_empty(), "{:?}", seen.log);
}

/// A model whose answer depends on the newest message, and that counts its answers.
struct Answering(Arc<AtomicUsize>);

impl Model for Answering {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let newest = request.messages().last().map(|message| message.content.text().into_owned());
        let answer = match newest.as_deref() {
            Some("hello") => json!({ "text": "I am sure", "finishReason": "stop" }),
            Some("Do not be sure.") => {
                json!({ "toolCalls": [{ "id": "1", "name": "reviewing__act", "args": { "text": "rm" } }] })
            }
            _ => json!({ "text": "the code is 4711" }),
        };
        Box::pin(async move { Ok(serde_json::from_value(answer)?) })
    }
}

/// Runs a turn with three verdicts whose store interrupts it, and returns its messages, each with what an extension has
/// noted of it.
async fn interrupted(plan: &Arc<Plan>, goes_on: GoesOn, waits: bool) -> Vec<String> {
    let (log, answers) = (Log::new(), Arc::new(AtomicUsize::new(0)));
    let rules = json!([
        { "when": "sure", "then": { "askAgain": "Do not be sure." } },
        { "when": "rm", "then": { "write": "ls" } },
        { "when": "4711", "then": { "write": "[code]" } },
    ]);
    let agent = Agent::builder("assistant").model(Answering(Arc::clone(&answers)));
    let agent = agent.with::<Reviewing>(json!({ "log": log, "waits": waits, "rules": rules }));
    let agent = agent.store(Breaking::new(MemoryStore::new(), Arc::clone(plan))).build().unwrap();
    let event = AgentEvent::input("hello");
    let (instance, outcome) = goondan_breaking::run(&agent, "test", &event, plan, goes_on).await.unwrap();
    assert_eq!(outcome.unwrap().text(), "the code is [code]");
    let messages = instance.messages().await.unwrap();
    instance.close().await.unwrap();
    let reviews = log.take().into_iter().filter(|line| !line.starts_with("acted")).count();
    assert_eq!(reviews, answers.load(Ordering::SeqCst), "each answer once");
    let line = |message: &Arc<Message>| {
        let texts: Vec<_> = message.content().texts().collect();
        format!("{:?} {texts:?} {:?}", message.role(), message.metadata().get("replacedBy"))
    };
    messages.iter().map(line).collect()
}

/// Interrupted at any write, a turn ends as if it had not been, and an answer that is recorded is reviewed no second
/// time.
#[both_linkages]
#[covers("REVIEW-01", "RESUME-01")]
async fn a_turn_that_is_interrupted_has_each_verdict_once() {
    for waits in KINDS {
        let whole = Plan::new([]);
        let expected = interrupted(&whole, GoesOn::InTheSameProcess, waits).await;
        assert!(expected.len() == 4 && !format!("{expected:?}").contains("4711"), "{expected:?}");
        for at in 1..=whole.writes() {
            for kind in [Break::Before, Break::After, Break::Away, Break::AwayAfter, Break::Lost] {
                let of_kind = [GoesOn::InTheSameProcess, GoesOn::AfterANewOpening];
                for goes_on in of_kind.into_iter().skip(usize::from(kind == Break::Lost)) {
                    let seen = interrupted(&Plan::new([(at, kind)]), goes_on, waits).await;
                    assert_eq!(seen, expected, "{kind:?} at {at}, {goes_on:?}");
                }
            }
        }
    }
}
