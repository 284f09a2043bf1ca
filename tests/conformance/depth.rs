//! DEPTH: values of any depth in every place where values come in.

use std::fs;
use std::path::Path;

use conformance_extensions::depth::{Deep, nested};
use goondan::agent::Policy;
use goondan::conversation::{Message, ToolOutput};
use goondan::event::{AgentEvent, Auth};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::name::ToolCallId;
use goondan::store::{FileStore, Fsync};
use goondan::{Agent, BoxFuture, ErrorCode, Instance, Map, Result, Value, json};
use goondan_covers::{both_linkages, covers, interruptible};
use tempfile::TempDir;

use crate::linkage::Extended;
use crate::support::Log;

/// Around the limit, around what serde_json reads, and more than a stack holds.
const LEVELS: [usize; 12] = [1, 62, 63, 64, 65, 126, 127, 128, 129, 1_000, 20_000, 100_000];

/// The places into which an extension puts values. A value that is a member of something is a level higher.
const WHOLE: [&str; 10] = [
    "output",
    "output by hand",
    "output of a blocking tool",
    "replaced output",
    "recovered output",
    "state",
    "update of state",
    "arguments in a message",
    "replaced output in a message",
    "log",
];
const MEMBERS: [&str; 15] = [
    "arguments",
    "arguments after the call",
    "metadata of a call",
    "metadata of the turn",
    "metadata after the turn",
    "metadata of a step",
    "metadata of a result",
    "metadata of a message",
    "message after the turn",
    "other part of a message",
    "data of a provider in a message",
    "catalog",
    "options of the model",
    "schema",
    "request",
];

fn store(dir: &Path) -> FileStore {
    FileStore::open(dir).unwrap().fsync(Fsync::Never)
}

/// Everything that a test can see of a conversation.
async fn content(
    instance: &Instance,
) -> (Vec<Message>, std::collections::BTreeMap<goondan::name::ExtensionName, Value>) {
    let messages = instance.messages().await.unwrap();
    (messages.iter().map(|message| (**message).clone()).collect(), instance.states().await.unwrap())
}

/// Runs a turn in which the extension puts a value of `levels` levels into `place`, and returns what was said about it.
/// The conversation goes on, and opens again with the same content.
#[interruptible]
async fn deep_turn(place: &str, levels: usize) -> String {
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let tool = match place {
        "output by hand" => "deep__by-hand",
        "output of a blocking tool" => "deep__slowly",
        _ => "deep__make",
    };
    let agent = || {
        let script = [ScriptItem::call(tool, json!({})).when("^deep$").unwrap(), ScriptItem::say("fine").repeat()];
        let config = json!({ "log": log, "place": place, "levels": levels });
        let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).with::<Deep>(config);
        agent.store(store(dir.path())).build().unwrap()
    };
    let instance = agent().instance("one").await.unwrap();
    let outcome = instance.run("deep").await;
    let mut said: Vec<_> = outcome.err().map(|error| error.report().to_string()).into_iter().collect();
    assert_eq!(instance.run("hello").await.unwrap().text(), "fine", "{place}, {levels}: the next turn");
    let before = content(&instance).await;
    instance.close().await.unwrap();
    said.extend(before.0.iter().map(|message| message.text().into_owned()));
    said.extend(log.take());

    let instance = agent().instance("one").await.unwrap();
    assert_eq!(content(&instance).await, before, "{place}, {levels}: opened again");
    assert_eq!(instance.run("hello").await.unwrap().text(), "fine", "{place}, {levels}: after the opening");
    instance.close().await.unwrap();
    said.join("\n")
}

#[both_linkages]
#[covers("DEPTH-01")]
async fn too_deep_values_of_extensions_are_refused_and_the_conversation_opens_again() {
    let places = WHOLE.iter().map(|place| (place, 64)).chain(MEMBERS.iter().map(|place| (place, 63)));
    for (place, limit) in places {
        let code = if place.contains("state") { "E_EXT_STATE" } else { "E_VALUE_DEPTH" };
        for levels in LEVELS {
            let said = deep_turn(place, levels).await;
            // A log line is written, with a note instead of the value.
            let visible = *place != "log";
            assert_eq!(said.contains(code), visible && levels > limit, "{place}, {levels}: {said}");
            assert_eq!(said.contains("more than 64 levels deep, at `/"), visible && levels > limit, "{place}: {said}");
        }
    }
}

#[both_linkages]
#[covers("DEPTH-01")]
async fn an_accepted_value_is_stored_as_it_is() {
    let output = |messages: &[Message]| {
        let mut parts = messages.iter().flat_map(|message| message.content().parts().to_vec());
        parts.find_map(|part| match part {
            goondan::conversation::Part::ToolResult(result) => Some(result.output),
            _ => None,
        })
    };
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let script = [ScriptItem::call("deep__make", json!({})), ScriptItem::say("fine")];
    let config = json!({ "log": log, "place": "output", "levels": 64 });
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).with::<Deep>(config);
    let agent = agent.store(store(dir.path())).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    instance.run("deep").await.unwrap();
    instance.close().await.unwrap();
    let (messages, _) = content(&agent.instance("one").await.unwrap()).await;
    assert_eq!(output(&messages), Some(ToolOutput::Json(nested(64))));
}

#[both_linkages]
#[covers("DEPTH-01")]
async fn events_with_too_deep_arguments_are_not_delivered() {
    for place in ["event", "event with a list of arguments"] {
        for levels in LEVELS {
            let said = deep_turn(place, levels).await;
            assert_eq!(said.contains("heard 2"), levels <= 64, "{place}, {levels}: {said}");
        }
    }
}

/// Calls a tool with arguments of some depth in each answer to `deep`.
struct DeepModel(usize);

impl Model for DeepModel {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let last = request.messages().last().map(|message| message.content.text().into_owned()).unwrap_or_default();
        let again = last.contains("could not be used");
        Box::pin(async move {
            if last != "deep" && !again {
                return Ok(ModelResponse::text("fine"));
            }
            let args = Value::Object(Map::from_iter([("deep".to_owned(), nested(self.0 - 1))]));
            let call = goondan::middleware::ToolRequest::new(ToolCallId::random(), "a__b", args);
            Ok(ModelResponse::tool_calls([call]))
        })
    }
}

#[tokio::test]
#[covers("DEPTH-01")]
async fn too_deep_arguments_of_a_model_are_a_malformed_answer() {
    for levels in LEVELS {
        let dir = TempDir::new().unwrap();
        let agent = || Agent::builder("assistant").model(DeepModel(levels)).store(store(dir.path())).build().unwrap();
        let instance = agent().instance("one").await.unwrap();
        let outcome = instance.run("deep").await;
        assert_eq!(outcome.is_err_and(|error| error.code() == "E_MODEL_UNUSABLE"), levels > 64, "{levels}");
        let said: String = content(&instance).await.0.iter().map(|message| message.text().into_owned()).collect();
        assert_eq!(said.contains("is nested more than 64 levels deep, at `/deep/"), levels > 64, "{levels}: {said}");
        let before = content(&instance).await;
        instance.close().await.unwrap();
        let instance = agent().instance("one").await.unwrap();
        assert_eq!(content(&instance).await, before);
        assert_eq!(instance.run("hello").await.unwrap().text(), "fine");
    }
}

/// Returns an object with a value, which together have `levels` levels.
fn map(levels: usize) -> Map<String, Value> {
    Map::from_iter([("deep".to_owned(), nested(levels - 1))])
}

#[tokio::test]
#[covers("DEPTH-01")]
async fn too_deep_input_events_run_no_turn() {
    let dir = TempDir::new().unwrap();
    let model = ScriptedModel::new([ScriptItem::say("fine").repeat()]);
    let agent = Agent::builder("assistant").model(model).store(store(dir.path())).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let mut turns = 0;
    for levels in LEVELS {
        for place in ["metadata", "source", "auth"] {
            let event = || {
                let (mut event, values) = (AgentEvent::input("hello"), map(levels));
                match place {
                    "metadata" => event.metadata = values,
                    "source" => event.source.other = values,
                    _ => {
                        let mut auth = Auth::default();
                        auth.other = values;
                        event.auth = Some(auth);
                    }
                }
                event
            };
            instance.send(event());
            let outcomes = [instance.run(event()).await, instance.run_stream(event()).finish().await];
            turns += if levels <= 64 { 3 } else { 0 };
            for outcome in outcomes {
                match outcome {
                    Ok(_) => assert!(levels <= 64, "{place}, {levels}"),
                    Err(error) => {
                        assert!(levels > 64, "{place}, {levels}: {error}");
                        assert_eq!(error.code(), &ErrorCode::VALUE_DEPTH);
                        assert!(error.message().contains(&format!("at `/{place}/deep/")), "{error}");
                    }
                }
            }
            assert_eq!(instance.messages().await.unwrap().len(), 2 * turns);
        }
    }
}

#[tokio::test]
#[covers("DEPTH-01")]
async fn too_deep_hints_are_refused_when_the_agent_is_built() {
    for levels in LEVELS {
        let model = ScriptedModel::new([ScriptItem::say("fine").repeat()]);
        let built = Agent::builder("assistant").model(model).hint("deep", nested(levels)).build();
        match built {
            Ok(agent) => {
                assert!(levels <= 63, "{levels}");
                agent.instance("one").await.unwrap().run("hello").await.unwrap();
            }
            Err(error) => {
                assert!(levels > 63, "{levels}: {error}");
                assert_eq!(error.code(), &ErrorCode::VALUE_DEPTH);
                assert!(error.message().contains("at `/deep/"), "{error}");
            }
        }
    }
}

#[both_linkages]
#[covers("DEPTH-01")]
async fn too_deep_configs_are_refused_when_the_agent_is_built() {
    for levels in LEVELS {
        let mut config = map(levels);
        config.extend([
            ("log".to_owned(), json!(Log::new())),
            ("place".to_owned(), "none".into()),
            ("levels".to_owned(), 1.into()),
        ]);
        let model = ScriptedModel::new([ScriptItem::say("fine").repeat()]);
        match Agent::builder("assistant").model(model).with::<Deep>(Value::Object(config)).build() {
            Ok(agent) => {
                assert!(levels <= 64, "{levels}");
                agent.instance("one").await.unwrap().run("hello").await.unwrap();
            }
            Err(error) => {
                assert!(levels > 64, "{levels}: {error}");
                assert_eq!(
                    (error.code(), error.extension().map(|name| name.as_str())),
                    (&ErrorCode::EXT_CONFIG, Some("deep"))
                );
                assert!(error.message().contains("at `/deep/"), "{error}");
            }
        }
    }
}

#[both_linkages]
#[covers("DEPTH-01")]
async fn extensions_read_values_that_another_implementation_stored() {
    for levels in [64, 65, 90, 107] {
        let (dir, log) = (TempDir::new().unwrap(), Log::new());
        let deep = format!("{}7{}", "[".repeat(levels), "]".repeat(levels));
        let messages = dir.path().join("instances/assistant:one/messages");
        let states = dir.path().join("instances/assistant:one/extensions");
        fs::create_dir_all(&messages).unwrap();
        fs::create_dir_all(&states).unwrap();
        let rest = r#""createdAt":"2026-01-31T12:00:00.000Z","source":{"type":"system"}"#;
        let base = format!(
            r#"{{"id":"a","data":{{"role":"assistant","content":[{{"type":"tool-call","toolCallId":"t","toolName":"a__b","input":{deep}}}]}},"metadata":{{"deep":{deep}}},{rest}}}
{{"id":"b","data":{{"role":"tool","content":[{{"type":"tool-result","toolCallId":"t","toolName":"a__b","output":{{"type":"json","value":{deep}}}}}]}},"metadata":{{}},{rest}}}
"#
        );
        fs::write(messages.join("base.jsonl"), base).unwrap();
        fs::write(states.join("deep.json"), deep).unwrap();
        let id = goondan::store::InstanceId { agent: "assistant".parse().unwrap(), key: "one".parse().unwrap() };
        store(dir.path()).repair(&id).unwrap();
        let agent = || {
            let mut policy = Policy::default();
            policy.report_model_input = true;
            let config = json!({ "log": log, "place": "read", "levels": 0 });
            let model = ScriptedModel::new([ScriptItem::say("fine").repeat()]);
            let agent = Agent::builder("assistant").model(model).policy(policy).with::<Deep>(config);
            agent.store(store(dir.path())).build().unwrap()
        };
        let instance = agent().instance("one").await.unwrap();
        assert_eq!(instance.run("hello").await.unwrap().text(), "fine", "{levels}");
        assert_eq!(log.take(), ["3 3 1 1 true", "3 inputs"], "{levels}");
        instance.close().await.unwrap();
    }
}
