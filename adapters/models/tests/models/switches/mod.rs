//! Another model over another interface in the middle of a turn, and in the next one: all pairs, in both directions.

mod answers;

use std::collections::BTreeSet;

use goondan::prelude::*;
use goondan::{Agent, json, json::Value};
use goondan_covers::covers;
use goondan_models::wire::{Anthropic, Chat, Converse, Dialect, Gemini, Responses};
use goondan_models::{ModelConfig, providers};

use crate::support::{Reply, Server, config};
use answers::{Exchange, Said, exchanges};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    Anthropic,
    Responses,
    Gemini,
    Chat,
    Converse,
}

impl Api {
    const ALL: [Self; 5] = [Self::Anthropic, Self::Responses, Self::Gemini, Self::Chat, Self::Converse];

    /// Returns whether the model, one of Anthropic, can have a budget for its reasoning.
    fn has_budget(self) -> bool {
        [Self::Anthropic, Self::Converse].contains(&self)
    }

    /// Returns whether the provider accepts an id of a call. Gemini finds results by their order too.
    fn accepts(self, id: Option<&str>) -> bool {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        match (self, id) {
            (_, Some("")) => false,
            (Self::Anthropic, Some(id)) => id.len() <= 128 && id.chars().all(legal),
            (Self::Converse, Some(id)) => id.len() <= 64 && id.chars().all(legal),
            (Self::Responses, Some(id)) => id.len() <= 64,
            (Self::Chat, Some(id)) => id.len() <= 40,
            (Self::Gemini, _) => true,
            (_, None) => false,
        }
    }

    /// Adds the model over this interface to an agent, by its name there.
    fn add_to(
        self,
        agent: goondan::agent::AgentBuilder,
        name: &str,
        config: ModelConfig,
    ) -> goondan::agent::AgentBuilder {
        match self {
            Self::Anthropic => agent.named_model(name, config.model(&providers::ANTHROPIC, Anthropic).unwrap()),
            Self::Responses => agent.named_model(name, config.model(&providers::OPENAI, Responses).unwrap()),
            Self::Gemini => agent.named_model(name, config.model(&providers::GEMINI, Gemini).unwrap()),
            Self::Converse => agent.named_model(name, config.model(&providers::BEDROCK, Converse).unwrap()),
            Self::Chat => {
                let dialect = Dialect::OPENROUTER;
                agent.named_model(name, config.model(&providers::chat(&dialect), Chat::new(dialect)).unwrap())
            }
        }
    }
}

/// Chooses the models of a turn's steps: their names are its input.
struct Switch;

#[goondan::extension(name = "switch")]
impl Switch {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn choose(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let names = ctx.input().input.clone().unwrap_or_default();
        let step = usize::try_from(ctx.step_index()).unwrap_or_default();
        let name = names.split(' ').nth(step).ok_or_else(|| Error::msg("a step too many"))?;
        ctx.set_model(name);
        next.run(ctx).await
    }

    /// Does something.
    #[tool]
    async fn act(&self) -> Result<&'static str> {
        Ok("done")
    }
}

/// Starts the server of a model, and returns it with the model's config.
async fn served(api: Api, answers: [Said; 2], budget: bool) -> (Server, ModelConfig) {
    let server = Server::start(answers.map(|said| Reply::events(&said.stream(api)))).await;
    let mut config = config(server.url());
    // A refused request would be repeated.
    config.retries.max = 4;
    if api == Api::Converse {
        config.model = "anthropic.m".to_owned();
    }
    let reasoning =
        if budget && api.has_budget() { json!({ "budgetTokens": 2048 }) } else { json!({ "effort": "high" }) };
    config.options = serde_json::from_value(json!({ "reasoning": reasoning })).unwrap();
    (server, config)
}

/// Runs `first second first` in one turn, and `second` in the next one.
async fn check(first: Api, second: Api, budget: bool) {
    let case = format!("{first:?} and {second:?}, with a budget: {budget}");
    let said = |number, calls| Said { number, reasons: true, calls };
    let mut answers = [said(0, true), said(1, true), said(2, false), said(3, false)];
    // Anthropic's models cannot begin to reason against a budget in the middle of a turn.
    answers[1].reasons = !(budget && second.has_budget());
    let (server_1, config_1) = served(first, [answers[0], answers[2]], budget).await;
    let (server_2, config_2) = served(second, [answers[1], answers[3]], budget).await;
    let agent = Agent::builder("assistant").extension::<Switch>(json!({}));
    let agent = agent.model(goondan::model::ScriptedModel::new([]));
    let agent = second.add_to(first.add_to(agent, "first", config_1), "second", config_2).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    for (input, last) in [("first second first", 2), ("second", 3)] {
        assert_eq!(instance.run(input).await.unwrap().text().trim_end(), answers[last].text(), "{case}");
    }

    let (of_first, of_second) = (server_1.requests(), server_2.requests());
    assert_eq!((of_first.len(), of_second.len()), (2, 2), "{case}: no request is refused, and none is repeated");
    let requests = [(first, &of_first[0]), (second, &of_second[0]), (first, &of_first[1]), (second, &of_second[1])];
    for (number, (api, request)) in requests.into_iter().enumerate() {
        let (case, body) = (format!("{case}, request {number}"), request.body.to_string());
        for earlier in &answers[..number] {
            assert!(body.contains(&earlier.text()), "{case}: texts always go back: {body}");
            let own = (earlier.number + number) % 2 == 0;
            assert_eq!(body.contains(&earlier.mark()), own && earlier.marked(api), "{case}: {earlier:?} in {body}");
        }
        let called = answers[..number].iter().filter(|said| said.calls).count();
        assert_calls_are_answered(api, &request.body, called, &case);
        if api.has_budget() {
            let expected = match (budget, number) {
                (false, _) => "adaptive",
                (true, 1) => "disabled",
                (true, _) => "enabled",
            };
            let members = request.body.get("additionalModelRequestFields").unwrap_or(&request.body);
            assert_eq!(members["thinking"]["type"], expected, "{case}");
        }
        if api == Api::Gemini {
            assert_signed(&request.body, &case);
        }
    }
}

/// Checks that the calls of answers, two each, have their results after them, by ids that the provider accepts.
fn assert_calls_are_answered(api: Api, body: &Value, answers: usize, case: &str) {
    let found = exchanges(api, body);
    let ids: Vec<_> = found.iter().filter(|exchange| !exchange.is_result).map(|call| call.id.clone()).collect();
    assert_eq!(ids.len(), 2 * answers, "{case}: {found:?}");
    let exchange = |is_result| move |id: &Option<String>| Exchange { is_result, id: id.clone() };
    let answered =
        |ids: &[_]| ids.iter().map(exchange(false)).chain(ids.iter().map(exchange(true))).collect::<Vec<_>>();
    assert_eq!(found, ids.chunks(2).flat_map(answered).collect::<Vec<_>>(), "{case}");
    assert!(ids.iter().all(|id| api.accepts(id.as_deref())), "{case}: {ids:?}");
    let given: Vec<_> = ids.iter().flatten().collect();
    assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len(), "{case}: {ids:?}");
}

/// Checks that the first call of each content of the model is signed: newer models of Gemini demand it.
fn assert_signed(body: &Value, case: &str) {
    for content in body["contents"].as_array().unwrap() {
        let parts = content["parts"].as_array().unwrap();
        if let Some(call) = parts.iter().find(|part| part["functionCall"].is_object()) {
            assert!(call["thoughtSignature"].is_string(), "{case}: {body}");
        }
    }
}

#[tokio::test]
#[covers("MODEL-01")]
async fn a_conversation_goes_on_with_any_other_model_between_steps_and_between_turns() {
    for first in Api::ALL {
        for second in Api::ALL.into_iter().filter(|second| *second != first) {
            for budget in [false, true] {
                check(first, second, budget).await;
            }
        }
    }
}
