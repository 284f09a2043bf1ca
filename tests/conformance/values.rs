//! VALUE-01: the answer of a turn is a value that fits a schema, or a named error.

use std::sync::Arc;

use conformance_extensions::reviewed::Reviewing;
use goondan::agent::{AgentBuilder, TurnUpdate};
use goondan::event::{AgentEvent, AnswerFormat};
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::{Agent, Instance, Result, Value, json};
use goondan_covers::{both_linkages, covers};
use schemars::JsonSchema;
use serde::Deserialize;
use tempfile::TempDir;

use crate::linkage::Extended;
use crate::support::Log;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Weather {
    city: String,
    degrees: f64,
    #[serde(default)]
    wind: Option<Wind>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Wind {
    from: String,
}

const GOOD: &str = r#"{"city":"Lisbon","degrees":21.0}"#;

fn lisbon() -> Weather {
    Weather { city: "Lisbon".to_owned(), degrees: 21.0, wind: None }
}

/// A conversation whose model plays `script`, and its requests.
struct Asked {
    instance: Instance,
    directory: TempDir,
}

impl Asked {
    async fn new(script: Vec<ScriptItem>, extend: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Self {
        let directory = TempDir::new().unwrap();
        let model = ScriptedModel::new(script).record(directory.path().join("requests"));
        let agent = extend(Agent::builder("assistant").model(model)).build().unwrap();
        Self { instance: agent.instance("test").await.unwrap(), directory }
    }

    async fn weather(&self) -> Result<Weather> {
        self.instance.run_as("How is the weather?").await
    }

    /// Returns the texts of the requests, without the instruction.
    fn requests(&self) -> Vec<Vec<String>> {
        let text = |message: &Value| {
            let content = &message["content"];
            content.as_str().map_or_else(|| content.to_string(), str::to_owned)
        };
        let is_own = |text: &String| !text.starts_with("When you have all that you need");
        let texts = |line: &str| {
            let request: Value = serde_json::from_str(line).unwrap();
            request["messages"].as_array().unwrap().iter().map(text).filter(is_own).collect()
        };
        let requests = std::fs::read_to_string(self.directory.path().join("requests")).unwrap();
        requests.lines().map(texts).collect()
    }

    async fn stored(&self) -> Vec<String> {
        let text = |message: &Arc<goondan::conversation::Message>| message.text().into_owned();
        self.instance.messages().await.unwrap().iter().map(text).collect()
    }
}

fn plain(agent: AgentBuilder) -> AgentBuilder {
    agent
}

#[tokio::test]
#[covers("VALUE-01")]
async fn an_answer_is_a_value() {
    for text in
        [GOOD.to_owned(), format!(" {GOOD}\n"), format!("```json\n{GOOD}\n```"), format!("Here:\n```\n{GOOD}```")]
    {
        let asked = Asked::new(vec![ScriptItem::say(text)], plain).await;
        assert_eq!(asked.weather().await.unwrap(), lisbon());
        assert_eq!(asked.stored().await, ["How is the weather?", GOOD], "what is stored is the value");
    }
}

#[tokio::test]
#[covers("VALUE-01")]
async fn the_model_is_asked_again_with_its_attempt_and_what_is_wrong() {
    let script = vec![
        ScriptItem::say("It is warm."),
        ScriptItem::say(r#"{"city":"Lisbon","degrees":"warm"}"#),
        ScriptItem::say(GOOD),
        ScriptItem::say("bye"),
    ];
    let asked = Asked::new(script, plain).await;
    let event = AgentEvent::input("How is the weather?").expecting(AnswerFormat::of::<Weather>());
    let (mut turn, mut told) = (asked.instance.run_stream(event), Vec::new());
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Text { text, .. } = update {
            told.push(text);
        }
    }
    let turn = turn.finish().await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps(), told), (GOOD, 3, vec![GOOD.to_owned()]));
    assert_eq!(asked.stored().await, ["How is the weather?", GOOD]);
    asked.instance.run("thanks").await.unwrap();
    let requests = asked.requests();
    assert_eq!(requests[1][1], "It is warm.");
    assert!(
        requests[1][2].contains("the text is no JSON value and nothing else: expected value at line 1"),
        "{requests:?}"
    );
    assert!(requests[2][4].contains("/degrees: "), "{requests:?}");
    assert_eq!(requests[3], ["How is the weather?", GOOD, "thanks"], "no later request has the attempts");
}

#[tokio::test]
#[covers("VALUE-01")]
async fn without_a_value_the_turn_fails_with_the_last_attempt() {
    for (at_most, requests) in [(0, 1), (2, 3), (4, 5)] {
        let asked = Asked::new(vec![ScriptItem::say("{}").repeat()], plain).await;
        let format = AnswerFormat::of::<Weather>().at_most(at_most);
        let event = AgentEvent::input("How is the weather?").expecting(format);
        let error = asked.instance.run(event).await.unwrap_err();
        assert_eq!(error.code().as_str(), "E_ANSWER_SCHEMA");
        assert!(error.message().contains("/: \"city\" is a required property"), "{error}");
        assert_eq!((error.details()["attempt"].as_str(), asked.requests().len()), (Some("{}"), requests));
        assert_eq!(asked.stored().await, ["How is the weather?"]);
    }
    let asked = Asked::new(vec![ScriptItem::say("unused")], plain).await;
    let event = AgentEvent::input("?").expecting(AnswerFormat::new(json!({ "type": 7 })));
    assert_eq!(asked.instance.run(event).await.unwrap_err().code().as_str(), "E_SCHEMA_INVALID");
    assert!(asked.stored().await.is_empty());
}

#[both_linkages]
#[covers("VALUE-01", "REVIEW-01")]
async fn tools_are_called_before_and_reviewers_judge_the_value() {
    let log = Log::new();
    let rules = json!([{ "when": "Porto", "then": { "askAgain": "It is about Lisbon." } }]);
    let call = ScriptItem::call("reviewing__act", json!({ "text": "look" }));
    let script = vec![call, ScriptItem::say(GOOD.replace("Lisbon", "Porto")), ScriptItem::say(GOOD)];
    let config = json!({ "log": log, "rules": rules });
    let asked = Asked::new(script, |agent| agent.with::<Reviewing>(config)).await;
    assert_eq!(asked.weather().await.unwrap(), lisbon());
    assert!(log.take().contains(&"acted: look".to_owned()));
    assert_eq!(asked.stored().await.last().unwrap(), GOOD);
    assert!(asked.requests()[2].contains(&"It is about Lisbon.".to_owned()), "{:?}", asked.requests());
}
