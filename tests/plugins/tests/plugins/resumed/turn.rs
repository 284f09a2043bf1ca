//! A turn with extensions, in a conversation that has had some, and what is left of it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use goondan::agent::{AgentBuilder, LocalRouter};
use goondan::conversation::{Content, MessageData, Part};
use goondan::event::{AgentEvent, Auth, Principal, TokenUsage};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::prelude::*;
use goondan::store::MemoryStore;
use goondan::{Agent, BoxFuture, Value, json};
use goondan_breaking::{Break, Breaking, GoesOn, Plan};
use tempfile::TempDir;

/// The inputs of the turns before. Those that begin with `old` and `pin` are for the case that marks messages.
pub(super) const EARLIER: [&str; 3] = ["old one", "pin two", "old three"];

/// A turn, and how it may differ when it is interrupted.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Adds the extensions. The directory has the skill `deploy`.
    pub(super) with: fn(AgentBuilder, &Path) -> AgentBuilder,
    /// The calls of each step. After them, the model answers.
    pub(super) steps: Vec<Vec<(&'static str, Value)>>,
    /// A text that the turn leaves if the extensions do what they are for.
    pub(super) shows: &'static str,
    /// Returns how a model fails.
    pub(super) fails: fn(&Asked) -> Option<Error>,
    /// What the models report for each request.
    pub(super) usage: Option<TokenUsage>,
    /// Checks what may differ when the turn is interrupted, and makes it as it was without that.
    pub(super) expected: fn(unbroken: &Seen, broken: &mut Seen),
}

/// A request to a model.
pub(super) struct Asked {
    pub(super) model: &'static str,
    /// Its number among the same requests to this model in the turn, from 1.
    pub(super) number: usize,
    pub(super) lines: Vec<String>,
    tools: Vec<String>,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]", self.model, self.lines.join(" | "), self.tools.join(" "))
    }
}

/// What is left of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) text: String,
    pub(super) messages: Vec<String>,
    pub(super) states: BTreeMap<String, Value>,
    /// The requests to models.
    pub(super) asked: Vec<String>,
    /// The handlers that ran.
    pub(super) ran: Vec<String>,
}

impl Seen {
    pub(super) fn shows(&self, text: &str) -> bool {
        let state = |state: &Value| state.to_string().contains(text);
        self.messages.iter().chain(&self.asked).chain(&self.ran).any(|seen| seen.contains(text))
            || self.states.values().any(state)
    }
}

/// A model whose answer follows from the newest input, or the newest result of a call after it.
struct Answering {
    name: &'static str,
    steps: Vec<Vec<(&'static str, Value)>>,
    fails: fn(&Asked) -> Option<Error>,
    usage: Option<TokenUsage>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Answering {
    fn answer(&self, request: ModelRequest<'_>) -> Result<ModelResponse> {
        let messages: Vec<_> = request.messages().collect();
        let lines: Vec<_> =
            messages.iter().map(|message| format!("{:?}: {}", message.role, plain(&message.content))).collect();
        let tools = request.tools().map(|tool| tool.name.to_string()).collect();
        let mut asked = self.asked.lock().unwrap();
        let is_same = |asked: &&Asked| asked.model == self.name && asked.lines == lines;
        let number = asked.iter().filter(is_same).count() + 1;
        asked.push(Asked { model: self.name, number, lines, tools });
        if let Some(error) = asked.last().and_then(self.fails) {
            return Err(error);
        }
        drop(asked);
        // The request of an extension has no tools.
        let is_step = request.tools().next().is_some();
        let step = messages.iter().rev().find_map(|message| self.step_after(message)).flatten();
        let Some(step) = step.filter(|_| is_step) else {
            return Ok(self.metered(ModelResponse::text("the key is sk-1")));
        };
        let calls = self.steps[step]
            .iter()
            .enumerate()
            .map(|(at, (tool, args))| json!({ "id": format!("{step}-{at}"), "name": tool, "args": args }));
        let calls: Vec<_> = calls.collect();
        Ok(self.metered(goondan::json::from_value(json!({ "toolCalls": calls, "finishReason": "tool-calls" }))?))
    }

    fn metered(&self, mut response: ModelResponse) -> ModelResponse {
        response.usage = self.usage;
        response
    }

    /// Returns the step that follows a message, if the model is to call something in it.
    fn step_after(&self, message: &MessageData) -> Option<Option<usize>> {
        let step = match message.content.parts().first()? {
            Part::ToolResult(result) => result.tool_call_id.as_str().split_once('-')?.0.parse::<usize>().unwrap() + 1,
            Part::Text(part) if message.role == Role::User && part.text == "go" => 0,
            Part::Text(part) if message.role == Role::User && EARLIER.contains(&&*part.text) => return Some(None),
            _ => return None,
        };
        Some((step < self.steps.len()).then_some(step))
    }
}

impl Model for Answering {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let answer = self.answer(request);
        Box::pin(async { answer })
    }
}

/// Tools of each effect, which log that they ran.
struct Desk {
    api: ExtensionApi,
    config: DeskConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct DeskConfig {
    log: PathBuf,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    text: Option<String>,
    /// How often the result repeats the text.
    times: Option<usize>,
}

impl Desk {
    fn run(&self, tool: &str, input: Input) -> Result<String> {
        let text = input.text.unwrap_or_default();
        let ran = format!("{tool} {text}");
        self.api.state().update(|ran: &mut Vec<String>| ran.push(tool.to_owned()))?;
        writeln!(OpenOptions::new().append(true).open(&self.config.log)?, "{}", ran.trim())?;
        Ok(format!("{tool}: {}", text.repeat(input.times.unwrap_or(1))))
    }
}

#[goondan::extension(name = "desk")]
impl Desk {
    #[init]
    fn new(api: ExtensionApi, config: DeskConfig) -> Self {
        Self { api, config }
    }

    /// Looks.
    #[tool(effect = read)]
    async fn look(&self, input: Input) -> Result<String> {
        self.run("look", input)
    }

    /// Sets.
    #[tool(effect = idempotent)]
    async fn set(&self, input: Input) -> Result<String> {
        self.run("set", input)
    }

    /// Pays.
    #[tool(effect = once)]
    async fn pay(&self, input: Input) -> Result<String> {
        self.run("pay", input)
    }
}

/// A directory for the turns of one case.
pub(super) struct Place {
    directory: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let skill = directory.path().join("skills/deploy");
        fs::create_dir_all(&skill).unwrap();
        fs::write(skill.join("SKILL.md"), "# Deploys the shop\nRun `./deploy.sh`.").unwrap();
        Self { directory }
    }

    /// Returns the file to which handlers append a line each time they run.
    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// Runs the turn of `case` in a conversation that has had some, interrupted as `plan` says for what comes after
    /// those. Returns what is left of it, and the numbers of its writes.
    pub(super) async fn run(&self, case: &Case, breaks: &[(usize, Break)], goes_on: GoesOn) -> (Seen, Range<usize>) {
        fs::write(self.log(), "").unwrap();
        let (asked, plan) = (Arc::<Mutex<Vec<Asked>>>::default(), Plan::new(breaks.iter().copied()));
        let Case { fails, usage, .. } = *case;
        let model = |name| Answering { name, steps: case.steps.clone(), fails, usage, asked: Arc::clone(&asked) };
        let store = Breaking::new(MemoryStore::new().with_directories(), Arc::clone(&plan));
        let agent = Agent::builder("assistant").model(model("own")).named_model("small", model("small")).store(store);
        let (router, other) = (LocalRouter::new(), Agent::builder("clerk").model(model("clerk")).build().unwrap());
        router.add(&other);
        let agent = agent.extension::<Desk>(json!({ "log": self.log() })).router(router.clone());
        let agent = (case.with)(agent, self.directory.path()).build().unwrap();

        let instance = agent.instance("test").await.unwrap();
        for input in EARLIER {
            instance.run(from_ada(input)).await.unwrap();
        }
        drop(instance);
        let before = plan.writes();
        asked.lock().unwrap().clear();
        let (instance, outcome) =
            goondan_breaking::run(&agent, "test", &from_ada("go").with_id("go"), &plan, goes_on).await.unwrap();
        let writes = before + 1..plan.writes() + 1;

        let message = |message: &Arc<Message>| {
            let mut metadata = json!(message.metadata());
            // Turns have random ids.
            if let Some(stands_for) = metadata.get_mut("standsFor") {
                *stands_for = "a turn".into();
            }
            format!("{:?}: {} {metadata}", message.role(), plain(message.content()))
        };
        let states = instance.states().await.unwrap().into_iter().map(|(name, state)| (name.to_string(), state));
        let text = match outcome {
            Ok(result) => result.text().into_owned(),
            Err(error) => format!("{}: {}", error.code(), error.message()),
        };
        let seen = Seen {
            text,
            messages: instance.messages().await.unwrap().iter().map(message).collect(),
            states: states.collect(),
            asked: asked.lock().unwrap().iter().map(Asked::to_string).collect(),
            ran: fs::read_to_string(self.log()).unwrap().lines().map(str::to_owned).collect(),
        };
        agent.close().await.unwrap();
        other.close().await.unwrap();
        (seen, writes)
    }
}

fn from_ada(input: &str) -> AgentEvent {
    let mut event = AgentEvent::input(input);
    event.auth = Some(Auth::new(Principal::new("user", "ada")));
    event
}

/// Returns the texts of a message, without the random name of the directory of the store.
fn plain(content: &Content) -> String {
    let text = content.texts().collect::<Vec<_>>().join(" ");
    let start = format!("goondan-{}-", std::process::id());
    let mut pieces = text.split(&start);
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + "store" + &piece[16..])
}
