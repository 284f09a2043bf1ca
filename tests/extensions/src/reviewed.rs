//! Extensions that review answers of the model.

use std::future::pending;

use goondan::Value;
use goondan::agent::AgentRequest;
use goondan::conversation::Content;
use goondan::middleware::{AnswerReviewer, AnswerVerdict, ModelAnswer, Review};
use goondan::prelude::*;

use crate::Log;
use crate::depth::nested;

/// Reviews answers as its config says, and logs what it sees of them.
pub struct Reviewing {
    config: Config,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    log: Log,
    /// What is done with an answer that has one of these texts; others are kept.
    #[serde(default)]
    rules: Vec<Rule>,
    /// Whether the reviewer is one that may wait.
    #[serde(default)]
    waits: bool,
    /// Whether pieces are told before the verdict.
    #[serde(default)]
    after_streaming: bool,
    /// Whether it is set after `next`.
    #[serde(default)]
    late: bool,
    /// Whether the stream of the step is held too.
    #[serde(default)]
    hold: bool,
    /// The answer that it prepares for the first step.
    prepare: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Rule {
    /// A part of the answer.
    when: String,
    then: Then,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Then {
    /// Uses this content instead.
    Replace(Value),
    /// Writes this in place of what was found, and keeps the rest of the answer.
    Write(String),
    ReplaceDeep,
    /// Fails the step with this code.
    Refuse(String),
    AskAgain(String),
    AskAgainAtMost(u32, String),
    Fail,
    Panic,
    Hang,
    /// Refuses the answer unless the model says yes.
    Judge,
}

impl Config {
    fn rule(&self, answer: &ModelAnswer) -> Option<&Rule> {
        let content = answer.content();
        self.rules.iter().find(|rule| content.texts().any(|text| text.contains(&rule.when)))
    }

    fn note(&self, answer: &ModelAnswer) {
        let calls: Vec<_> = answer.tool_calls().map(|call| &*call.tool_name).collect();
        let by = answer.prepared_by().map_or("the model", |by| by.as_str());
        let tokens = answer.usage().map(|usage| usage.total_tokens);
        let finish = answer.finish_reason();
        self.log.write(format!("{:?} {calls:?} by {by}, {tokens:?}, {finish:?}", answer.text()));
    }

    fn verdict(&self, answer: &ModelAnswer) -> Result<AnswerVerdict> {
        let Some(Rule { when, then }) = self.rule(answer) else { return Ok(AnswerVerdict::Keep) };
        Ok(match then {
            Then::Replace(content) => AnswerVerdict::replace(serde_json::from_value::<Content>(content.clone())?),
            Then::Write(text) => {
                AnswerVerdict::replace(answer.content().clone().map_text(|all| all.replace(when, text).into()))
            }
            Then::ReplaceDeep => {
                let call =
                    goondan::conversation::ToolCallPart::new("1".into(), "a__b", goondan::json!({ "a": nested(100) }));
                AnswerVerdict::replace(vec![call.into()])
            }
            Then::Refuse(code) => AnswerVerdict::refuse(Error::new(code.clone(), "not this").suggest("say less")),
            Then::AskAgain(words) => AnswerVerdict::ask_again(words),
            Then::AskAgainAtMost(n, words) => AnswerVerdict::ask_again_at_most(*n, words),
            Then::Fail => return Err(Error::new("E_BROKEN", "it broke")),
            Then::Panic => panic!("it panicked"),
            Then::Hang | Then::Judge => AnswerVerdict::Keep,
        })
    }
}

/// A reviewer that waits.
struct Waiting(Config);

impl AnswerReviewer for Waiting {
    async fn review(&self, review: Review<'_>) -> Result<AnswerVerdict> {
        let Self(config) = self;
        config.note(review.answer());
        match config.rule(review.answer()).map(|rule| &rule.then) {
            Some(Then::Hang) => pending().await,
            Some(Then::Judge) => {
                let request = AgentRequest::model(None).input(format!("judge: {}", review.answer().text()));
                let judged = review.agents().request(request).await?;
                config.log.write(format!("judged: {}", judged.response));
                Ok(match judged.response.as_str() {
                    "yes" => AnswerVerdict::Keep,
                    _ => AnswerVerdict::refuse(Error::new("E_JUDGED", "the judge says no")),
                })
            }
            _ => {
                tokio::task::yield_now().await;
                config.verdict(review.answer())
            }
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    text: String,
}

#[goondan::extension(name = "reviewing")]
impl Reviewing {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    fn set(&self, ctx: &mut StepContext<'_>) {
        let config = self.config.clone();
        match (config.waits, config.after_streaming) {
            (true, false) => ctx.review_answer(Waiting(config)),
            (true, true) => ctx.review_after_streaming(Waiting(config)),
            (false, after) => {
                let review = move |answer: &ModelAnswer| {
                    config.note(answer);
                    config.verdict(answer)
                };
                if after { ctx.review_after_streaming(review) } else { ctx.review_answer(review) }
            }
        }
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let Config { late, hold, prepare, .. } = &self.config;
        if *hold {
            ctx.hold_stream();
        }
        if let Some(answer) = prepare.as_ref().filter(|_| ctx.step_index() == 0) {
            ctx.answer_with(answer.as_str());
        }
        if !late {
            self.set(ctx);
        }
        let result = next.run(ctx).await?;
        if *late {
            self.set(ctx);
        }
        Ok(result)
    }

    /// Acts on the world.
    #[tool(effect = idempotent)]
    async fn act(&self, input: Input) -> Result<String> {
        self.config.log.write(format!("acted: {}", input.text));
        Ok(format!("did {}", input.text))
    }
}
