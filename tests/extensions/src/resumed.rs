//! An extension whose layers and tools do what its config says, for turns that are interrupted and go on.

use std::path::PathBuf;
use std::task::Poll;
use std::time::Duration;

use goondan::agent::AgentRequest;
use goondan::event::AgentDelegate;
use goondan::prelude::*;

use crate::Log;

/// Acts in its layers, and has a tool of each effect.
pub struct Resuming {
    api: ExtensionApi,
    config: Config,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    log: Log,
    /// What the layers do before their `next`, and after it.
    #[serde(default)]
    turn: Vec<Act>,
    #[serde(default)]
    turn_after: Vec<Act>,
    #[serde(default)]
    step: Vec<Act>,
    #[serde(default)]
    step_after: Vec<Act>,
    /// The call layer adds this to the arguments.
    #[serde(default)]
    argument: Option<String>,
    /// The tool that never returns while this file does not exist, which it makes.
    #[serde(default)]
    hangs: Option<(String, PathBuf)>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Act {
    /// Appends a message with this text and a random id.
    Append(String),
    /// Appends a message with this id.
    AppendAs(String),
    /// Appends a message whose text is the number of messages, unless this run is repeated: that would be paid.
    Pay,
    /// Removes the message that this layer has appended last in this run.
    TakeBack,
    /// Replaces the oldest message by one with this text.
    ReplaceFirst(String),
    RemoveFirst,
    /// Removes the message with this id.
    TakeOut(String),
    Truncate,
    /// Adds a text to the state, unless this run is repeated.
    Note(String),
    /// Holds the stream of the step.
    Hold,
    /// Shows the model a message with this text.
    Project(String),
    /// Prepares this answer in the step with this index.
    AnswerIn(u32, String),
    /// Asks for another attempt of the step with this index.
    RetryIn(u32),
    /// Fails in the step with this index.
    FailIn(u32),
    /// Asks this agent, and appends its answer.
    Ask(String),
    /// Asks this agent for an answer that is a message of a later step.
    AskLater(String),
    /// Starts a turn of this agent.
    Delegate(String),
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Text {
    text: Option<String>,
}

/// What the acts of one run share.
#[derive(Default)]
struct Run {
    appended: Option<goondan::name::MessageId>,
}

macro_rules! act {
    ($self:ident, $ctx:ident, $run:ident, $act:expr, $step:expr) => {
        match $act {
            Act::Append(text) => {
                let message = Message::user(text.as_str());
                $run.appended = Some(message.id().clone());
                $ctx.emit(MessageEvent::append(message));
            }
            Act::AppendAs(id) => {
                $ctx.emit(MessageEvent::append(Message::user(format!("fixed {id}")).with_id(id.as_str())))
            }
            Act::Pay => {
                if !$ctx.is_repeated() {
                    $self.config.log.write("paid");
                    let messages = $ctx.conversation().len();
                    $ctx.emit(MessageEvent::append(Message::user(format!("paid for {messages} messages"))));
                }
            }
            Act::TakeBack => {
                if let Some(id) = $run.appended.take() {
                    $ctx.emit(MessageEvent::remove(id));
                }
            }
            Act::ReplaceFirst(text) => {
                let first = $ctx.conversation().iter().next().map(|message| message.id().to_owned());
                if let Some(id) = first {
                    $ctx.emit(MessageEvent::replace(id.as_str(), Message::user(text.as_str()).with_id(id.as_str())));
                }
            }
            Act::RemoveFirst => {
                let first = $ctx.conversation().iter().next().map(|message| message.id().to_owned());
                if let Some(id) = first {
                    $ctx.emit(MessageEvent::remove(id.as_str()));
                }
            }
            Act::TakeOut(id) => $ctx.emit(MessageEvent::remove(id.as_str())),
            Act::Truncate => $ctx.emit(MessageEvent::truncate()),
            Act::Note(text) => {
                if !$ctx.is_repeated() {
                    $self.note(text)?;
                }
            }
            Act::Ask(agent) => {
                let answer =
                    $ctx.agents().request(AgentRequest::new(agent.as_str()).input("what do you think?")).await?;
                $ctx.emit(MessageEvent::append(Message::user(answer.response)));
            }
            Act::AskLater(agent) => {
                $ctx.agents().request_later(AgentRequest::new(agent.as_str()).input("what do you think?"))?;
            }
            Act::Delegate(agent) => {
                $self.api.events().delegate(AgentDelegate::new(agent.parse()?, "what do you think?"));
            }
            other => $step(other)?,
        }
    };
}

impl Resuming {
    fn note(&self, text: &str) -> Result<()> {
        self.api.state().update(|notes: &mut Vec<String>| notes.push(text.to_owned()))
    }

    async fn run(&self, tool: &str, text: &str) -> Result<String> {
        if let Some((hanging, file)) = &self.config.hangs
            && hanging == tool
            && !file.exists()
        {
            std::fs::write(file, "").unwrap();
            self.note("lost")?;
            self.config.log.write("hangs");
            std::future::pending::<()>().await;
        }
        self.note(tool)?;
        self.config.log.write(format!("ran {tool}"));
        Ok(format!("{tool} {text}"))
    }
}

#[goondan::extension(name = "resuming")]
impl Resuming {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Self {
        Self { api, config }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let mut run = Run::default();
        for act in &self.config.turn {
            act!(self, ctx, run, act, |act| -> Result<()> { panic!("{act:?} is for steps") });
        }
        let result = next.run(ctx).await?;
        for act in &self.config.turn_after {
            act!(self, ctx, run, act, |act| -> Result<()> { panic!("{act:?} is for steps") });
        }
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let mut run = Run::default();
        for act in &self.config.step {
            act!(self, ctx, run, act, |act: &Act| in_step(ctx, act));
        }
        let result = next.run(ctx).await?;
        for act in &self.config.step_after {
            act!(self, ctx, run, act, |act: &Act| in_step(ctx, act));
        }
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if let Some(argument) = &self.config.argument {
            ctx.args_mut().insert("text".to_owned(), argument.as_str().into());
        }
        next.run(ctx).await
    }

    /// Gives other tasks time.
    #[tool(effect = read)]
    async fn pause(&self) -> Result<String> {
        let mut left = 200;
        std::future::poll_fn(|cx| {
            left -= 1;
            cx.waker().wake_by_ref();
            if left > 0 { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        Ok("paused".to_owned())
    }

    /// Looks.
    #[tool(effect = read)]
    async fn look(&self, input: Text) -> Result<String> {
        self.run("look", input.text.as_deref().unwrap_or("around")).await
    }

    /// Sets.
    #[tool(effect = idempotent)]
    async fn set(&self, input: Text) -> Result<String> {
        self.run("set", input.text.as_deref().unwrap_or("it")).await
    }

    /// Pays.
    #[tool(effect = once)]
    async fn pay(&self, input: Text) -> Result<String> {
        self.run("pay", input.text.as_deref().unwrap_or("all")).await
    }

    /// Fails.
    #[tool(effect = once)]
    async fn fail(&self) -> Result<String> {
        self.run("fail", "").await?;
        Err(Error::new("E_BROKEN", "it is broken").suggest("mend it"))
    }

    /// Asks another agent.
    #[tool(effect = read)]
    async fn ask(&self, ctx: &ToolContext<'_>) -> Result<String> {
        Ok(ctx.agents().request(AgentRequest::new("other").input("and you?")).await?.response)
    }
}

fn in_step(ctx: &mut StepContext<'_>, act: &Act) -> Result<()> {
    match act {
        Act::Hold => ctx.hold_stream(),
        Act::Project(text) => ctx.project(MessageEvent::append(Message::user(text.as_str()))),
        Act::AnswerIn(step, text) if *step == ctx.step_index() => ctx.answer_with(text.as_str()),
        Act::RetryIn(step) if *step == ctx.step_index() => {
            return Err(Error::retry_after(Duration::ZERO, "again"));
        }
        Act::FailIn(step) if *step == ctx.step_index() => return Err(Error::msg("as asked")),
        _ => {}
    }
    Ok(())
}
