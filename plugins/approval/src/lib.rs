//! Asks a person before tool calls run, by rules.
//!
//! - [`Config`]: the rules, and what a question is.
//! - `rules`: which rule a call meets, and what follows.
// ASK-01

mod rules;

use std::fmt;
use std::time::Duration;

use goondan::decision::{OnInput, Question};
use goondan::event::Shown;
use goondan::prelude::*;
use goondan::{Map, Value};

use rules::{Call, Rules, Standing};
pub use rules::{Otherwise, Rule};

/// The config of the extension.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// Calls that never run.
    #[serde(default)]
    deny: Vec<Rule>,
    /// Calls that a person is asked about. A rule that names a tool goes before `allow`, and one that only names an
    /// effect after it.
    #[serde(default)]
    ask: Vec<Rule>,
    /// Calls that run without a question.
    #[serde(default)]
    allow: Vec<Rule>,
    /// The fate of all other calls.
    #[serde(default)]
    otherwise: Otherwise,
    /// How long a decision is waited for, such as `7d` or `30m`; without an end by default. Then the call is rejected.
    #[serde(default)]
    expires: Option<String>,
    /// The effect of another input of a person while a call waits.
    #[serde(default)]
    on_input: WhileWaiting,
    /// The scope of "always".
    #[serde(default)]
    always: Always,
}

/// The effect of another input of a person while a call waits.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WhileWaiting {
    /// It is refused, and the call waits on.
    #[default]
    Refuse,
    /// The call is rejected, and the input is answered.
    Reject,
}

/// The scope of "always", within the conversation in which a person says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Always {
    /// Calls of the same tool with the same arguments.
    #[default]
    Same,
    /// All calls of the tool.
    Tool,
    /// Nothing: it is not offered.
    Never,
}

/// A decision of a person: yes or no, or yes and always.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Answer {
    Plain(bool),
    Always(Approved),
}

/// Yes.
#[derive(Debug, Deserialize, JsonSchema)]
struct Approved {
    /// Whether calls like this one run without a question later.
    always: bool,
}

/// The extension.
#[derive(Debug)]
pub struct Approval {
    rules: Rules,
    expires: Option<Duration>,
    on_input: OnInput,
    always: Always,
    api: ExtensionApi,
}

/// Asks a person before tool calls run, by rules.
#[goondan::extension(name = "approval", guard)]
impl Approval {
    #[init]
    fn new(config: Config, api: ExtensionApi) -> Result<Self> {
        let Config { deny, ask, allow, otherwise, expires, on_input, always } = config;
        let expires = expires.map(|text| {
            humantime::parse_duration(&text).map_err(|error| {
                Error::msg(format!("`expires: {text}` is no duration: {error}")).suggest("write it as 30m, 12h or 7d")
            })
        });
        let on_input = match on_input {
            WhileWaiting::Refuse => OnInput::Refuse,
            WhileWaiting::Reject => OnInput::Reject,
        };
        let rules = Rules::new(deny, ask, allow, otherwise)?;
        Ok(Self { rules, expires: expires.transpose()?, on_input, always, api })
    }

    /// Innermost, so that the rules see the arguments that the tool gets.
    #[middleware(toolCall, priority = 1100)]
    async fn approve(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        self.judge(ctx)?;
        next.run(ctx).await
    }

    /// Returns the rules for tool calls: which are denied, asked about and allowed, and which ones the user has
    /// approved for good. With `forget`, the approval of this number is taken back.
    #[tool(effect = idempotent)]
    async fn rules(&self, input: Forget) -> Result<Listed> {
        self.listed(&input)
    }

    /// Shows the person what the tool tells the model. The payload is the input of the tool.
    #[on("approval.rules")]
    async fn show_rules(&self, event: &Event) -> Result<()> {
        let listed = self.listed(&event.payload()?)?;
        self.api.events().show(Shown::note(listed.to_string()));
        Ok(())
    }
}

/// The input of the tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Forget {
    /// The number of an approval to take back, from 1.
    #[serde(default)]
    forget: Option<usize>,
}

/// The output of the tool.
#[derive(Debug, Serialize)]
struct Listed {
    rules: Vec<String>,
    always: Vec<Grant>,
}

/// A line for each rule, and one with its number for each approval.
impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rules.join("\n"))?;
        self.always.iter().enumerate().try_for_each(|(index, Grant { tool, args })| {
            write!(f, "\nalways {}: {tool}", index + 1)?;
            args.iter().try_for_each(|args| write!(f, " {}", Value::Object(args.clone())))
        })
    }
}

/// The approvals for good: the state of the extension.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Given {
    #[serde(default)]
    always: Vec<Grant>,
}

impl Given {
    fn add(&mut self, grant: Grant) {
        if !self.always.contains(&grant) {
            self.always.push(grant);
        }
    }

    /// Takes back the grant of this number, from 1.
    fn forget(&mut self, number: usize) {
        if (1..=self.always.len()).contains(&number) {
            self.always.remove(number - 1);
        }
    }
}

/// An approval for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Grant {
    tool: String,
    /// The arguments, `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args: Option<Map<String, Value>>,
}

impl Grant {
    fn covers(&self, call: &Call<'_>) -> bool {
        self.tool == call.tool && self.args.as_ref().is_none_or(|args| args == call.args)
    }
}

impl Approval {
    /// Lets the call run, or asks about it.
    ///
    /// # Errors
    /// When the call must not run.
    fn judge(&self, ctx: &mut ToolCallContext<'_>) -> Result<()> {
        // Read if a rule needs it. A tool that the step does not offer has none; such a call is asked of nobody.
        let effect = || ctx.tool().map(|tool| tool.effect).unwrap_or_default();
        let call = Call { tool: ctx.tool_name(), effect: &effect, args: ctx.args() };
        let standing = self.rules.standing(&call);
        if let Standing::Denied(rule) = standing {
            return Err(Error::rejected(rule.why("the rules of this agent deny such calls")));
        }
        // Also if the rules ask no more: what was asked is decided, and is not to be rejected for that.
        match ctx.decision::<Answer>()? {
            Some(Answer::Plain(false)) => return Err(Error::rejected("it was not approved")),
            Some(Answer::Always(Approved { always: true })) if self.always != Always::Never => {
                let given = self.given_by(&call);
                self.api.state().update(|known: &mut Given| known.add(given))?;
            }
            Some(_) => {}
            None if standing.is_allowed() || self.is_given(&call)? => {}
            None => {
                let why = standing.why();
                let question = self.question(ctx.tool_name(), why.as_deref());
                ctx.ask(question);
            }
        }
        Ok(())
    }

    fn listed(&self, input: &Forget) -> Result<Listed> {
        if let Some(number) = input.forget {
            self.api.state().update(|known: &mut Given| known.forget(number))?;
        }
        Ok(Listed { rules: self.rules.lines(), always: self.given()?.always })
    }

    fn given(&self) -> Result<Given> {
        Ok(self.api.state().get()?.unwrap_or_default())
    }

    fn is_given(&self, call: &Call<'_>) -> Result<bool> {
        Ok(self.always != Always::Never && self.given()?.always.iter().any(|grant| grant.covers(call)))
    }

    fn given_by(&self, call: &Call<'_>) -> Grant {
        let args = (self.always == Always::Same).then(|| call.args.clone());
        Grant { tool: call.tool.to_owned(), args }
    }

    fn question(&self, tool: &str, why: Option<&str>) -> Question {
        let mut text = match why {
            Some(why) => format!("Run {tool}? {why}"),
            None => format!("Run {tool}?"),
        };
        match self.always {
            Always::Same => text.push_str("\nAlways: calls with the same arguments."),
            Always::Tool => text.push_str("\nAlways: all calls of this tool."),
            Always::Never => {}
        }
        let question = Question::new(text).on_input(self.on_input);
        let question = match self.always {
            Always::Never => question.expecting::<bool>(),
            Always::Same | Always::Tool => question.expecting::<Answer>(),
        };
        match self.expires {
            Some(time) => question.expires_after(time),
            None => question,
        }
    }
}
