//! ASK-04: a server asks the person while a call runs, and says how far it is.

use std::future::poll_fn;
use std::pin::pin;

use goondan::agent::{LiveQuestions, LiveUpdate, TurnUpdate};
use goondan::decision::{AnswerKind, Decision};
use goondan::extension::LogLevel;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::testing::Chat;
use goondan::{Agent, Instance, Value, json};
use goondan_covers::{both_linkages, covers};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::support::{Odd, call, chat, logs, refused};
use crate::front_end::{asked, says, with_front_end};
use crate::linkage::WithPlugin;

fn form() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": { "type": "string", "title": "City" },
            "floor": { "type": "integer", "default": 3 },
            "carrier": { "type": "string", "oneOf": [{ "const": "p", "title": "Post" }, { "const": "e", "title": "Express" }] },
        },
        "required": ["city"],
    })
}

fn elicit(params: &Value) -> Value {
    json!({ "params": params })
}

/// Versions of the protocol in which a server asks within the call, and by an answer that says what it needs.
const WAYS: [&[&str]; 2] = [&[], &["modern"]];

/// Returns the answer that the server got.
fn got(text: &str, modern: bool) -> Value {
    let answer: Value = goondan::json::from_str(text).unwrap();
    if modern { answer["q"].clone() } else { answer }
}

#[both_linkages]
#[covers("ASK-04")]
async fn a_server_lets_the_person_fill_in_a_form() {
    for options in WAYS {
        let odd = Odd::new();
        let mut chat = chat(odd.config(options)).await;
        let mut questions = chat.agent().subscribe_questions();
        let params = json!({ "message": "Where \u{1b}[2Jto?", "requestedSchema": form() });
        for (decision, expected) in [
            (
                Ok(json!({ "city": "Lisbon" })),
                json!({ "action": "accept", "content": { "city": "Lisbon", "floor": 3 } }),
            ),
            (Err("none of your business"), json!({ "action": "decline" })),
        ] {
            let text = with_front_end(call(&mut chat, "elicit", elicit(&params)), async {
                let question = asked(&mut questions).await;
                assert_eq!(question.wait().tool, "odd__elicit");
                let form = &question.wait().questions[0].question;
                assert!(form.kind() == AnswerKind::Form && !form.text.contains('\u{1b}'), "{form:?}");
                let call = question.wait().call.clone();
                question
                    .decide(match decision.clone() {
                        Ok(value) => Decision::new(call, value),
                        Err(reason) => Decision::reject(call, reason),
                    })
                    .unwrap();
            });
            assert_eq!(got(&text.await, !options.is_empty()), expected, "{options:?}");
        }
        if !options.is_empty() {
            assert_eq!(odd.logged("state"), ["\"s\"", "\"s\""]);
        }
        drop(questions);
        let text = call(&mut chat, "elicit", elicit(&params)).await;
        assert_eq!(got(&text, !options.is_empty()), json!({ "action": "cancel" }), "there is no person to ask");
    }
}

#[both_linkages]
#[covers("ASK-04")]
async fn a_server_lets_the_person_open_a_page() {
    const URL: &str = "https://example.org/sign-in?state=1";
    let params = json!({ "mode": "url", "message": "Sign in.", "url": URL, "elicitationId": "1" });
    for options in WAYS {
        let odd = Odd::new();
        let mut chat = chat(odd.config(options)).await;
        let mut questions = chat.agent().subscribe_questions();
        let opens = async |questions: &mut LiveQuestions| {
            let question = asked(questions).await;
            assert_eq!(question.wait().questions[0].question.kind(), AnswerKind::Address(URL.to_owned()));
            question.decide(says(&question, true)).unwrap();
        };
        let text = with_front_end(call(&mut chat, "elicit", elicit(&params)), opens(&mut questions)).await;
        assert_eq!(got(&text, !options.is_empty())["action"], "accept");
        // By an error, after which the call is sent again.
        let text = with_front_end(call(&mut chat, "open_first", params.clone()), opens(&mut questions)).await;
        assert!(text.starts_with("open_first {"), "{text}");
    }
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    let (code, message) = refused(&mut chat, "open_first", params).await;
    assert_eq!((code.as_str(), message.as_str()), ("E_MCP_REFUSED", "open it"));
}

/// Forbidden questions are declined, and those that are too large or name no web page cancelled: no person is shown them.
#[both_linkages]
#[covers("ASK-04")]
async fn a_server_must_not_ask_for_everything() {
    let text = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } } });
    let form = |schema: Value| json!({ "message": "?", "requestedSchema": schema });
    let url = |url: &str| json!({ "mode": "url", "message": "?", "url": url, "elicitationId": "1" });
    let many: Value = (0..60_000).map(|number| json!(format!("option {number}"))).collect();
    for (params, action) in [
        (form(text("password")), "decline"),
        (form(text("api_key")), "decline"),
        (form(json!({ "type": "object", "properties": { "x": { "type": "string", "enum": many } } })), "cancel"),
        (json!({ "message": "x".repeat(1 << 20), "requestedSchema": text("city") }), "cancel"),
        (url("file:///etc/passwd"), "cancel"),
        (url("https://example.org/ \u{7}"), "cancel"),
    ] {
        let odd = Odd::new();
        let mut chat = chat(odd.config(&[])).await;
        let _questions = chat.agent().subscribe_questions();
        let text = call(&mut chat, "elicit", elicit(&params)).await;
        assert_eq!(got(&text, false), json!({ "action": action }), "{}", &params.to_string()[..60]);
        let says = if action == "decline" { "asks for a secret" } else { "E_TOOL_ASKS|the question|the address" };
        let says: Vec<_> = says.split('|').collect();
        assert!(logs(&chat).iter().any(|line| says.iter().any(|says| line.contains(says))), "{:?}", logs(&chat));
    }
}

/// Asking the model of the agent stays declined.
#[both_linkages]
#[covers("ASK-04")]
async fn a_server_does_not_ask_the_model() {
    let params =
        json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "?" } }], "maxTokens": 9 });
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    let text = call(&mut chat, "sample", elicit(&params)).await;
    assert_eq!(got(&text, false)["code"], -32601, "{text}");
    let odd = Odd::new();
    let mut chat = super::support::chat(odd.config(&["modern"])).await;
    let (code, message) = refused(&mut chat, "sample", elicit(&params)).await;
    assert!(code == "E_MCP_UNSUPPORTED" && message.contains("ask the model"), "{message}");
}

#[both_linkages]
#[covers("ASK-04")]
async fn a_server_that_asks_in_a_loop_is_stopped() {
    let params = json!({ "message": "again?", "requestedSchema": form() });
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    let mut questions = chat.agent().subscribe_questions();
    let mut count = 0;
    let arguments = json!({ "params": params, "times": 40 });
    let text = with_front_end(call(&mut chat, "elicit", arguments), async {
        loop {
            let question = asked(&mut questions).await;
            count += 1;
            question.decide(says(&question, json!({ "city": "Lisbon" }))).unwrap();
        }
    });
    assert_eq!(got(&text.await, false), json!({ "action": "cancel" }));
    assert_eq!(count, 32);
}

/// It takes its question back, is killed, or the call is cancelled: the question is gone.
#[both_linkages]
#[covers("ASK-04")]
async fn a_question_is_gone_with_what_has_asked_it() {
    let params = json!({ "message": "?", "requestedSchema": form() });
    for how in ["withdraw", "kill", "drop"] {
        let odd = Odd::new();
        let (agent, one, two) = two_conversations(&odd, "elicit", "withdraw", &params).await;
        let mut questions = agent.subscribe_questions();
        let mut turn = pin!(one.run("one"));
        let question = {
            let mut next = pin!(asked(&mut questions));
            poll_fn(|cx| {
                assert!(turn.as_mut().poll(cx).is_pending());
                next.as_mut().poll(cx)
            })
            .await
        };
        match how {
            "withdraw" => assert_eq!(two.run("two").await.unwrap().text(), "done"),
            "kill" => odd.running().into_iter().for_each(|pid| kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap()),
            _ => {}
        }
        if how == "drop" {
            turn.set(one.run("never"));
        } else {
            assert_eq!(turn.await.unwrap().text(), "done");
            let result = one.messages().await.unwrap()[2].text().into_owned();
            assert!(
                result.contains(if how == "kill" { "E_MCP_GONE" } else { "questions are taken back" }),
                "{how}: {result}"
            );
        }
        let LiveUpdate::Gone(gone) = questions.next().await else { panic!("{how}: it is asked again") };
        assert_eq!(gone.id(), question.id());
    }
}

/// Two conversations that share a server, and call a tool of it each: at the inputs `one` and `two`.
async fn two_conversations(odd: &Odd, one: &str, two: &str, params: &Value) -> (Agent, Instance, Instance) {
    let call = |tool: &str, when: &str| {
        ScriptItem::call(format!("odd__{tool}"), elicit(params)).when(&format!("^{when}$")).unwrap().repeat()
    };
    let model = ScriptedModel::new([call(one, "one"), call(two, "two"), ScriptItem::say("done").repeat()]);
    let config = odd.config_with(&[], json!({ "attach": { "scope": "shared" } }));
    let agent = Agent::builder("assistant").model(model).plugin("odd", "mcp", config).build().unwrap();
    let (one, two) = (agent.instance("one").await.unwrap(), agent.instance("two").await.unwrap());
    (agent, one, two)
}

/// Two conversations that share a server: a question is asked of neither if both have calls, since it may be about either.
#[both_linkages]
#[covers("ASK-04", "PATTERN-MCP-12")]
async fn a_question_never_reaches_another_conversation() {
    let odd = Odd::new();
    let params = json!({ "message": "?", "requestedSchema": form() });
    let (agent, one, two) = two_conversations(&odd, "hang", "elicit", &params).await;
    let mut questions = agent.subscribe_questions();
    let mut hangs = pin!(one.run("one"));
    let turn = with_front_end(two.run("two"), async {
        poll_fn(|cx| hangs.as_mut().poll(cx).map(drop)).await;
    });
    let (mut turn, mut next) = (pin!(turn), pin!(asked(&mut questions)));
    let turn = poll_fn(|cx| {
        assert!(next.as_mut().poll(cx).is_pending(), "it is asked");
        turn.as_mut().poll(cx)
    });
    assert_eq!(turn.await.unwrap().text(), "done");
    assert!(two.messages().await.unwrap()[2].text().contains("cancel"));
}

#[both_linkages]
#[covers("PATTERN-MCP-04")]
async fn the_progress_and_the_log_of_a_server_are_told() {
    let odd = Odd::new();
    let script = [ScriptItem::call("odd__progress", json!({})), ScriptItem::say("done")];
    let chat = super::support::chat_with(odd.config(&[]), script).await;
    let (mut turn, mut told) = (chat.instance().run_stream("go"), Vec::new());
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Progress { done, total, text, .. } = update {
            told.push((done, total, text));
        }
    }
    turn.finish().await.unwrap();
    assert_eq!(told.last(), Some(&(2.0, Some(2.0), "all".to_owned())), "{told:?}");
    assert!(told.iter().all(|(_, _, text)| !text.contains('\u{1b}')), "{told:?}");

    let mut chat: Chat = super::support::chat(odd.config(&[])).await;
    assert_eq!(call(&mut chat, "write", json!({})).await, "written");
    let lines: Vec<_> = chat.logs().into_iter().filter(|line| line.text.contains("db: ")).collect();
    let lines: Vec<_> = lines.iter().map(|line| (line.level, line.text.as_str())).collect();
    assert!(lines.contains(&(LogLevel::Warn, "MCP server: db: {\"two\":2}")), "{lines:?}");
    assert!(lines.contains(&(LogLevel::Error, "MCP server: db: three")), "{lines:?}");
}
