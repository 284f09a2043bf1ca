//! The plan of the model: it writes the items of its work with their states, reads them in each step, and the person
//! sees them.
// SHOW-01

use goondan::event::{ConversationRewound, ItemState, Shown, ShownItem};
use goondan::name::TurnId;
use goondan::prelude::*;
use goondan::tool::{Presentation, ShownCall, ToolOutcome};

/// The most items of a plan, and the most characters of one.
const MAX_ITEMS: usize = 50;
const MAX_TEXT: usize = 200;

/// The extension. It has no config.
#[derive(Debug)]
pub struct Plan {
    api: ExtensionApi,
}

/// The input of the tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
struct Written {
    /// All items of the plan, in the order of the work. An empty list takes the plan away.
    #[schemars(length(max = MAX_ITEMS))]
    items: Vec<Item>,
}

/// The state of the extension.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Stored {
    #[serde(flatten)]
    plan: Written,
    /// The turn in which it was written.
    turn: Option<TurnId>,
}

/// An item of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
struct Item {
    /// What is to be done, in a few words.
    #[schemars(length(min = 1, max = MAX_TEXT))]
    text: String,
    /// Whether it is open, active (you work on it now), done, or failed.
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    Open,
    Active,
    Done,
    Failed,
}

/// The answer of the tool.
#[derive(Debug, Serialize)]
struct Progress {
    done: usize,
    of: usize,
}

/// Lets the model plan its work, and shows the plan to the person.
#[goondan::extension(name = "plan")]
impl Plan {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    /// Writes the plan of your work: all its items, each with its state. Write it before work of three or more steps,
    /// and again as soon as an item begins or ends; one item at a time is active. The person sees it, and you find it
    /// at the end of your input. Simple tasks need no plan.
    #[tool(effect = idempotent, present = shown)]
    async fn write(&self, input: Written, ctx: &ToolContext<'_>) -> Result<Progress> {
        let progress = Progress { done: input.done(), of: input.items.len() };
        self.show(&input);
        self.api.state().set(&Stored { plan: input, turn: Some(ctx.turn_id().clone()) })?;
        Ok(progress)
    }

    /// Forgets a plan whose turn was taken back.
    #[on("conversation.rewound")]
    async fn forget(&self, event: &Event) -> Result<()> {
        let ConversationRewound { turns, .. } = event.payload()?;
        if self.stored()?.turn.is_some_and(|turn| turns.contains(&turn)) {
            self.api.state().set(&Stored::default())?;
            self.show(&Written::default());
        }
        Ok(())
    }

    /// Shows a plan that is not done to the person who watches the turn.
    #[middleware(turn)]
    async fn begin(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let written = self.written()?;
        if written.is_unfinished() {
            self.show(&written);
        }
        next.run(ctx).await
    }

    /// Puts a plan that is not done at the end of the model's input, for the step alone: what stands before it stays as
    /// it was, and a provider's cache keeps it (CACHE-01). Inside of the layers that add messages, so behind theirs.
    #[middleware(step, priority = 900)]
    async fn read(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let written = self.written()?;
        if written.is_unfinished() {
            ctx.project(MessageEvent::append(Message::user(written.for_model())));
        }
        next.run(ctx).await
    }
}

impl Plan {
    fn stored(&self) -> Result<Stored> {
        Ok(self.api.state().get()?.unwrap_or_default())
    }

    fn written(&self) -> Result<Written> {
        Ok(self.stored()?.plan)
    }

    fn show(&self, written: &Written) {
        let items = written.items.iter().map(|item| ShownItem::new(item.state.into(), &*item.text));
        self.api.events().show(Shown::list("Plan", items));
    }
}

impl Written {
    fn done(&self) -> usize {
        self.items.iter().filter(|item| item.state == State::Done).count()
    }

    fn is_unfinished(&self) -> bool {
        self.items.iter().any(|item| matches!(item.state, State::Open | State::Active))
    }

    /// Returns the plan as the model reads it.
    fn for_model(&self) -> String {
        let line = |item: &Item| format!("\n{} {}", ItemState::from(item.state).mark(), item.text);
        let items: String = self.items.iter().map(line).collect();
        format!(
            "<plan>{items}\n</plan>\nThis is your plan, and no message of the person. Keep it true with `plan__write`."
        )
    }
}

impl From<State> for ItemState {
    fn from(state: State) -> Self {
        match state {
            State::Open => Self::Open,
            State::Active => Self::Active,
            State::Done => Self::Done,
            State::Failed => Self::Failed,
        }
    }
}

/// Presents a plan: what is being done, and how much is.
// PRESENT-01
fn shown(call: &ShownCall<'_>) -> Presentation {
    let items = call.args().get("items").and_then(|items| items.as_array()).map(Vec::as_slice).unwrap_or_default();
    let active = items.iter().find(|item| item["state"] == "active");
    let presentation = Presentation::new(active.and_then(|item| item["text"].as_str()).unwrap_or_default());
    match (call.output("done"), call.output("of")) {
        (Some(done), Some(of)) => presentation.outcome(ToolOutcome::ok(format!("{done} of {of} done"))),
        _ => presentation,
    }
}
