//! A notebook for each conversation, which the model and other extensions write to.

use goondan::prelude::*;

/// The state of the extension. It is stored with each turn, and loaded when the conversation is continued.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Notebook {
    notes: Vec<Note>,
}

/// One note.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
pub struct Note {
    /// What to remember, in one sentence.
    text: String,
    /// What it is about, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
}

/// The arguments of `notes__list`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Filter {
    /// Only list notes about this topic.
    topic: Option<String>,
}

/// The extension. Each conversation has its own value.
#[derive(Debug)]
pub struct Notes {
    api: ExtensionApi,
}

/// Keeps notes, one notebook for each conversation.
///
/// Other extensions add a note by emitting the event `notes.leave` with a note as its payload.
#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    /// Adds a note, which `notes__list` returns later.
    #[tool]
    async fn add(&self, note: Note) -> Result<String> {
        let count = self.write(note)?;
        Ok(format!("noted; {count} in all"))
    }

    /// Lists the notes, oldest first.
    #[tool(effect = read)]
    async fn list(&self, filter: Filter) -> Result<Vec<Note>> {
        let mut notes = self.read()?.notes;
        notes.retain(|note| filter.topic.is_none() || note.topic == filter.topic);
        Ok(notes)
    }

    /// Tells the model the number of notes, in the description of the tool that lists them. A message would stay in the
    /// conversation and be wrong after the next note.
    #[middleware(step)]
    async fn tell_count(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let count = self.read()?.notes.len();
        if let Some(tool) = ctx.tool_catalog_mut().get_mut("notes__list") {
            tool.description = Some(format!("Lists the notes, oldest first. There are {count}."));
        }
        next.run(ctx).await
    }

    /// Runs concurrently with the turn when another extension emits the event.
    #[on("notes.leave")]
    async fn leave(&self, event: &Event) -> Result<()> {
        let count = self.write(event.payload()?)?;
        self.api.logger().with("count", count).debug("another extension added a note");
        Ok(())
    }
}

impl Notes {
    fn read(&self) -> Result<Notebook> {
        Ok(self.api.state().get()?.unwrap_or_default())
    }

    /// Adds a note and returns the number of notes. `update` is atomic, so no note is lost.
    fn write(&self, note: Note) -> Result<usize> {
        self.api.state().update(|notebook: &mut Notebook| {
            notebook.notes.push(note);
            notebook.notes.len()
        })
    }
}
