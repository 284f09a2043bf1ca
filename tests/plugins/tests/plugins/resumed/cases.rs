//! The turns that are interrupted, and how they may differ then.

use std::path::Path;

use goondan::agent::AgentBuilder;
use goondan::event::TokenUsage;
use goondan::prelude::*;
use goondan::{ErrorCode, Value, json};

use super::turn::{Asked, Case, Seen};
use crate::linkage::WithPlugin;
use crate::message_compaction::support::marker;
use crate::shared::writer;

type Steps = Vec<Vec<(&'static str, Value)>>;

/// Calls of each effect in a step, and another one.
fn two_steps() -> Steps {
    vec![
        vec![("desk__look", json!({})), ("desk__set", json!({})), ("desk__pay", json!({}))],
        vec![("desk__look", json!({}))],
    ]
}

/// As many steps with a call each.
fn many_steps() -> Steps {
    let call = |tool| vec![(tool, json!({ "text": "tea ", "times": 10 }))];
    ["desk__look", "desk__pay", "desk__set", "desk__look", "desk__pay"].map(call).into()
}

fn compaction(agent: AgentBuilder, config: Value) -> AgentBuilder {
    agent.plugin("message-compaction", "message-compaction", config)
}

fn overflow() -> Error {
    Error::new(ErrorCode::MODEL_CONTEXT_OVERFLOW, "the request is too long")
}

fn busy() -> Error {
    Error::new(ErrorCode::MODEL_OVERLOADED, "too much to do").retryable(true)
}

/// What a handler has run again for: its output is in another file than before.
fn another_file(_: &Seen, broken: &mut Seen) {
    broken.messages.iter_mut().chain(&mut broken.asked).for_each(|text| *text = text.replace("-2.txt", "-1.txt"));
}

/// The metadata of the turn begins again, so that the model which fails is asked once more.
fn first_model_again(unbroken: &Seen, broken: &mut Seen) {
    let is_extra = |asked: &String| asked.starts_with("own: ") && asked.contains("Tool: ");
    let extra = broken.asked.iter().position(is_extra).or_else(|| {
        let own = broken.asked.iter().enumerate().filter(|(_, asked)| asked.starts_with("own: "));
        own.map(|(at, _)| at).nth(1)
    });
    if let Some(extra) = extra.filter(|_| broken.asked.len() > unbroken.asked.len()) {
        broken.asked.remove(extra);
    }
}

/// The cache is in memory. The tool has the same answer.
fn cache_is_gone(_: &Seen, broken: &mut Seen) {
    let results = broken.messages.iter_mut().filter(|message| message.starts_with("Tool: weather__today"));
    results.skip(1).for_each(|message| *message = message.replace(" {}", r#" {"preparedBy":"cache"}"#));
}

/// The state has the id of the turn.
fn another_turn(unbroken: &Seen, broken: &mut Seen) {
    let own = |seen: &Seen| seen.states["message-compaction"]["keptIn"].clone();
    assert!(own(unbroken).is_string() && own(broken).is_string(), "{:?}", broken.states);
    broken.states.get_mut("message-compaction").unwrap()["keptIn"] = own(unbroken);
}

/// The state has the id of the turn.
fn another_plan(unbroken: &Seen, broken: &mut Seen) {
    let own = |seen: &Seen| seen.states["plan"]["turn"].clone();
    assert!(own(unbroken).is_string() && own(broken).is_string(), "{:?}", broken.states);
    broken.states.get_mut("plan").unwrap()["turn"] = own(unbroken);
}

/// The layers of a step that is run again count it again, and those of its calls.
fn counted_again(unbroken: &Seen, broken: &mut Seen) {
    let of = |seen: &Seen, key: &str| seen.states["shared"][key].as_i64().unwrap();
    let more = ["writer.count", "writer.turns"].map(|key| of(broken, key) - of(unbroken, key));
    // One that may not run twice is not counted if its outcome is unknown.
    assert!(more[0] == more[1] && (-10..=45).contains(&more[0]), "{more:?}: {:?}", broken.states);
    broken.states.insert("shared".to_owned(), unbroken.states["shared"].clone());
}

/// The tokens of the answer that was recorded before are not counted.
fn tokens_of_a_step(unbroken: &Seen, broken: &mut Seen) {
    let counted = |seen: &Seen| seen.states["token-budget"].as_u64().unwrap();
    assert!([0, 60].contains(&(counted(unbroken) - counted(broken))), "{:?}", broken.states);
    broken.states.clone_from(&unbroken.states);
}

#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn cases() -> Vec<Case> {
    let case = |name, shows, steps, with: fn(AgentBuilder, &Path) -> AgentBuilder| Case {
        name,
        shows,
        with,
        steps,
        fails: |_| None,
        usage: None,
        expected: |_, _| {},
    };
    let differs = |expected: fn(&Seen, &mut Seen), case: Case| Case { expected, ..case };
    let failing = |fails: fn(&Asked) -> Option<Error>, case: Case| Case { fails, ..case };
    vec![
        case("a window", "own: Assistant: the key is sk-1 | User: old three", two_steps(), |agent, _| {
            agent.plugin("message-window", "message-window", json!({ "maxMessages": 4 }))
        }),
        case("a compaction that counts", "removed without a summary", many_steps(), |agent, _| {
            compaction(agent, json!({ "maxMessages": 6, "retainLastMessages": 2 }))
        }),
        case("a compaction that a model writes", "small: User: <conversation>", many_steps(), |agent, _| {
            let summary = json!({ "model": "Model/small" });
            compaction(agent, json!({ "maxMessages": 6, "retainLastMessages": 2, "summary": summary }))
        }),
        case("a compaction of marked messages", "\"compaction.summary\":true", two_steps(), |agent, _| {
            let agent = agent.extension::<marker::Extension>(Value::Null);
            let summary = json!({ "model": "Model/small" });
            compaction(agent, json!({ "candidates": "marked", "moreThan": 1, "summary": summary }))
        }),
        case("a compaction by tokens", "Summary of 14 earlier messages", many_steps(), |agent, _| {
            let summary = json!({ "model": "Model/small" });
            compaction(agent, json!({ "maxTokens": 200, "retainLastMessages": 2, "summary": summary }))
        }),
        failing(
            |asked| (asked.model == "own" && asked.lines.len() > 8).then(overflow),
            case(
                "a compaction because the model refuses the request",
                "small: User: <conversation>",
                many_steps(),
                |agent, _| {
                    let summary = json!({ "model": "Model/small" });
                    compaction(agent, json!({ "retainLastMessages": 2, "summary": summary }))
                },
            ),
        ),
        differs(
            another_turn,
            failing(
                |asked| (asked.model == "small").then(busy),
                case("a compaction that fails and keeps", "keptIn", many_steps(), |agent, _| {
                    let summary = json!({ "model": "Model/small" });
                    let config = json!({
                        "maxMessages": 6, "retainLastMessages": 2, "summary": summary, "onFailure": "keep",
                    });
                    compaction(agent, config)
                }),
            ),
        ),
        differs(
            another_turn,
            failing(
                |asked| (asked.model == "small").then(busy),
                case("a compaction that fails in the turn and keeps", "keptIn", many_steps(), |agent, _| {
                    let summary = json!({ "model": "Model/small" });
                    let config = json!({
                        "maxMessages": 10, "retainLastMessages": 2, "summary": summary, "onFailure": "keep",
                    });
                    compaction(agent, config)
                }),
            ),
        ),
        failing(
            |asked| (asked.model == "small").then(busy),
            case("a compaction that fails and counts", "removed without a summary", many_steps(), |agent, _| {
                let summary = json!({ "model": "Model/small" });
                compaction(agent, json!({ "maxMessages": 6, "retainLastMessages": 2, "summary": summary }))
            }),
        ),
        case(
            "skills",
            "The skill `deploy` is open",
            vec![
                vec![("skills__open", json!({ "name": "deploy" })), ("desk__look", json!({}))],
                vec![("skills__run", json!({ "name": "deploy", "command": "echo run >> ../../log; echo done" }))],
                vec![("skills__close", json!({ "name": "deploy" })), ("desk__pay", json!({}))],
            ],
            |agent, directory| agent.bundle_root(directory).plugin("skills", "skills", json!({ "discovery": {} })),
        ),
        case("a search of tools", "[tool-search__search desk__pay]", searches(), |agent, _| {
            agent.plugin("tool-search", "tool-search", json!({}))
        }),
        case("a search of tools for a turn", "[tool-search__search desk__pay]", searches(), |agent, _| {
            agent.plugin("tool-search", "tool-search", json!({ "persistSelection": false }))
        }),
        differs(
            another_file,
            case(
                "long results",
                "The whole text is in the file",
                vec![
                    vec![("desk__look", json!({ "text": "tea ", "times": 1000 }))],
                    vec![
                        ("desk__set", json!({ "text": "rice ", "times": 1000 })),
                        ("desk__pay", json!({ "text": "salt ", "times": 1000 })),
                    ],
                ],
                |agent, _| agent.plugin("tool-output", "tool-output", json!({ "maxCharacters": 2000 })),
            ),
        ),
        case(
            "arguments that are changed and refused",
            "rewrittenArgs",
            vec![
                vec![("desk__set", json!({ "text": "~/tea" })), ("desk__pay", json!({ "text": "sudo rice" }))],
                vec![("desk__pay", json!({ "text": "a long word" })), ("desk__look", json!({}))],
            ],
            |agent, _| {
                let rules = json!([
                    { "tool": "desk__*", "path": "/text", "deny": ["sudo"], "maxLength": 6 },
                    { "tool": "desk__set", "path": "/text", "replace": { "from": "~/", "to": "/home/" } },
                ]);
                agent.plugin("validate", "validate", json!({ "rules": rules }))
            },
        ),
        failing(
            |asked| (asked.lines.contains(&"User: go".to_owned()) && asked.number <= 2).then(busy),
            case("a model that is asked again", "User: go", two_steps(), |agent, _| {
                agent.plugin("retry", "retry", json!({ "firstDelayMs": 1 }))
            }),
        ),
        differs(
            first_model_again,
            failing(
                |asked| (asked.model == "own" && asked.lines.iter().any(|line| line == "User: go")).then(busy),
                case("another model", "small: User: old one", two_steps(), |agent, _| {
                    agent.plugin("retry", "retry", json!({ "firstDelayMs": 1, "fallback": { "model": "Model/small" } }))
                }),
            ),
        ),
        case(
            "an MCP server",
            "odd__echo tea",
            vec![vec![("odd__echo", json!({ "text": "tea" })), ("desk__pay", json!({}))]],
            |agent, _| {
                let transport = json!({ "type": "stdio", "command": [env!("CARGO_BIN_EXE_odd-server")] });
                agent.plugin("odd", "mcp", json!({ "transport": transport }))
            },
        ),
        case("a limit per user", "User: go", two_steps(), |agent, _| {
            agent.recipe("user-limit", json!({ "maxTurns": 4 }))
        }),
        case("a limit per conversation", "4", two_steps(), |agent, _| {
            agent.recipe("turn-limit", json!({ "maxTurns": 4 }))
        }),
        differs(
            tokens_of_a_step,
            Case {
                usage: Some(TokenUsage::new(50, 10)),
                ..case("a budget of tokens", "360", two_steps(), |agent, _| {
                    agent.recipe("token-budget", json!({ "maxTokens": 1000 }))
                })
            },
        ),
        case("context from a search", "Found: where to go", two_steps(), |agent, _| {
            agent.recipe("search", json!({ "documents": ["where to go"] }))
        }),
        case("redaction", "[address]", redacted(), |agent, _| agent.recipe("hide-addresses", json!({}))),
        case("a guard of answers", "I cannot tell you that.", redacted(), |agent, _| {
            agent.recipe("output-guard", json!({}))
        }),
        differs(
            cache_is_gone,
            case(
                "a cache",
                "preparedBy",
                vec![vec![("weather__today", json!({})); 2], vec![("weather__today", json!({}))]],
                |agent, _| agent.recipe("cache", json!({})).recipe("weather", json!({})),
            ),
        ),
        differs(
            another_plan,
            case(
                "a plan",
                "\"text\":\"pay\"",
                vec![
                    vec![("plan__write", items("active")), ("desk__pay", json!({}))],
                    vec![("plan__write", items("done")), ("desk__look", json!({}))],
                ],
                |agent, _| agent.plugin("plan", "plan", Value::Null),
            ),
        ),
        case(
            "another agent",
            "clerk: User: where?",
            vec![
                vec![("agents__request", json!({ "target": "clerk", "input": "where?" })), ("desk__pay", json!({}))],
                vec![("agents__list", json!({})), ("desk__look", json!({}))],
            ],
            |agent, _| agent.plugin("agents", "agents", Value::Null),
        ),
        differs(
            counted_again,
            case("values of the conversation", "writer.count", two_steps(), |agent, _| {
                agent.plugin("shared", "shared", Value::Null).extension::<writer::Extension>(Value::Null)
            }),
        ),
        case("a summary", "What was said before", two_steps(), |agent, _| {
            agent.recipe("summary", json!({ "maxMessages": 0, "model": "small" }))
        }),
        differs(
            another_file,
            case("all of them", "The whole text is in the file", all(), |agent, directory| {
                let agent = agent.bundle_root(directory).plugin("skills", "skills", json!({ "discovery": {} }));
                let agent =
                    agent.plugin("tool-search", "tool-search", json!({ "always": ["skills__*", "desk__look"] }));
                let agent = agent.plugin("tool-output", "tool-output", json!({ "maxCharacters": 2000 }));
                let agent = agent.plugin("retry", "retry", json!({ "firstDelayMs": 1 }));
                let summary = json!({ "model": "Model/small" });
                compaction(agent, json!({ "maxMessages": 10, "retainLastMessages": 4, "summary": summary }))
            }),
        ),
    ]
}

fn items(state: &str) -> Value {
    json!({ "items": [{ "text": "look", "state": "done" }, { "text": "pay", "state": state }] })
}

fn searches() -> Steps {
    let search = |query| ("tool-search__search", json!({ "query": query }));
    vec![
        vec![search("pay"), ("desk__set", json!({})), ("desk__pay", json!({}))],
        vec![search("look"), ("desk__pay", json!({})), ("desk__look", json!({}))],
        vec![("desk__look", json!({}))],
    ]
}

fn redacted() -> Steps {
    vec![vec![("desk__look", json!({ "text": "write to ada@example.org" })), ("desk__pay", json!({}))]]
}

fn all() -> Steps {
    let search = |query| ("tool-search__search", json!({ "query": query }));
    vec![
        vec![("skills__open", json!({ "name": "deploy" })), search("pay")],
        vec![("desk__pay", json!({ "text": "salt ", "times": 1000 })), search("desk")],
        vec![
            ("skills__run", json!({ "name": "deploy", "command": "echo run >> ../../log" })),
            ("desk__set", json!({})),
        ],
        vec![("skills__close", json!({ "name": "deploy" }))],
    ]
}
