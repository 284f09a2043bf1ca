//! Lets the model ask the person, instead of guessing: which of these, or a text.
// ASK-04

use std::time::Duration;

use goondan::Value;
use goondan::decision::{OnInput, Question, Unanswered};
use goondan::prelude::*;
use goondan::tool::ToolReply;

/// The most answers to choose from.
const MAX_OPTIONS: usize = 20;
/// The most characters of a question.
const MAX_QUESTION: usize = 4_000;
/// The most characters of an answer to choose from.
const MAX_OPTION: usize = 200;

/// The config of the extension.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// How long an answer is waited for, such as `1h` or `7d`; without an end by default. Then the model reads that no
    /// answer came.
    expires: Option<String>,
    /// The end of a question without a person to ask.
    unanswered: WithoutPerson,
}

/// The end of a question without a person to ask, such as in a pipe.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WithoutPerson {
    /// It waits until it is answered.
    #[default]
    Suspend,
    /// The model reads that there is nobody, and goes on.
    Reject,
}

/// The extension.
#[derive(Debug)]
pub struct Ask {
    expires: Option<Duration>,
    unanswered: Unanswered,
}

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The question. The person reads nothing else, so it says what it is about.
    question: String,
    /// The answers to choose from, best first. Without any, the person writes a text.
    #[serde(default)]
    #[schemars(length(max = 20))]
    options: Vec<String>,
    /// Whether the person may choose several of the options.
    #[serde(default)]
    several: bool,
}

/// Lets the model ask the person, instead of guessing.
#[goondan::extension(name = "ask")]
impl Ask {
    #[init]
    fn new(config: Config) -> Result<Self> {
        let expires = config.expires.map(|text| {
            humantime::parse_duration(&text).map_err(|error| {
                Error::msg(format!("`expires: {text}` is no duration: {error}")).suggest("write it as 30m, 12h or 7d")
            })
        });
        let unanswered = match config.unanswered {
            WithoutPerson::Suspend => Unanswered::Suspend,
            WithoutPerson::Reject => Unanswered::Reject,
        };
        Ok(Self { expires: expires.transpose()?, unanswered })
    }

    /// Asks the person you work for, and returns the answer. Use it when you cannot go on without something that only
    /// they know or may decide. Do not ask what you can find out yourself, and never for a password or a key.
    #[tool(effect = read, asks, present = "{question}")]
    async fn person(&self, input: Input, ctx: &ToolContext<'_>) -> Result<ToolReply> {
        match ctx.decision::<Value>()? {
            Some(answer) => ToolReply::json(answer),
            None => self.question(input).map(ToolReply::ask),
        }
    }
}

impl Ask {
    fn question(&self, Input { question, options, several }: Input) -> Result<Question> {
        let text = question.trim();
        if text.is_empty() || text.chars().count() > MAX_QUESTION {
            return Err(Error::msg(format!("the question has no text, or more than {MAX_QUESTION} characters"))
                .suggest("ask for one thing, in a few sentences"));
        }
        let unfit = |option: &String| option.trim().is_empty() || option.chars().count() > MAX_OPTION;
        if options.len() > MAX_OPTIONS || options.iter().any(unfit) {
            let message =
                format!("there are more than {MAX_OPTIONS} options, or one of no or over {MAX_OPTION} characters");
            return Err(Error::msg(message).suggest("offer a few short answers, or none"));
        }
        let question = match (options.is_empty(), several) {
            (true, _) => Question::for_text(text),
            (false, false) => Question::choose(text, options),
            (false, true) => Question::choose_several(text, options),
        };
        let question = question.on_input(OnInput::Reject).unanswered(self.unanswered.clone());
        Ok(match self.expires {
            Some(time) => question.expires_after(time),
            None => question,
        })
    }
}
