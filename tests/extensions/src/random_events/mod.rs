//! An extension that runs a program of message events, and the naive list with which it compares what it sees.

mod naive;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use goondan::conversation::ConversationView;
use goondan::prelude::*;

pub use naive::Naive;
pub use program::{Around, Edit, NewId, TurnProgram};

/// The program of the current turn, and its expected outcome. It is in a file, which the test and the extension change
/// alternately.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Run {
    /// What the extension emits.
    pub program: TurnProgram,
    /// The expected conversation.
    pub naive: Naive,
}

impl Run {
    /// Reads the file at `path`.
    ///
    /// # Panics
    /// When it does not exist, or is no run.
    pub fn read(path: &Path) -> Self {
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    /// Changes the file at `path`. A file that does not exist is a new run.
    ///
    /// # Panics
    /// When `path` cannot be written.
    pub fn change(path: &Path, change: impl FnOnce(&mut Self)) {
        let mut run = if path.exists() { Self::read(path) } else { Self::default() };
        change(&mut run);
        run.write(path);
    }

    fn write(&self, path: &Path) {
        fs::write(path, serde_json::to_vec(self).unwrap()).unwrap();
    }
}

/// Emits the events of the program, and compares every view with the naive list after each event.
pub struct Random {
    path: PathBuf,
    /// The run of the current turn.
    run: Mutex<Run>,
}

#[derive(Deserialize, JsonSchema)]
struct Config {
    run: PathBuf,
}

#[goondan::extension(name = "random")]
impl Random {
    #[init]
    fn new(config: Config) -> Self {
        Self { path: config.run, run: Mutex::default() }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        *self.run.lock().unwrap() = Run::read(&self.path);
        self.emit_edits(ctx, |program| &program.around.before);
        let result = next.run(ctx).await?;
        self.emit_edits(ctx, |program| &program.around.after);
        let run = self.run.lock().unwrap();
        run.write(&self.path);
        if run.program.fails { Err(Error::msg("the program ends so")) } else { Ok(result) }
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let index = ctx.step_index() as usize;
        self.emit_edits(ctx, |program| &program.steps[index].before);
        self.run.lock().unwrap().naive.expect_request();
        let result = next.run(ctx).await?;
        self.emit_edits(ctx, |program| &program.steps[index].after);
        Ok(result)
    }
}

/// The members of the turn context and the step context that the extension needs.
trait MessageContext {
    fn view(&self) -> ConversationView<'_>;
    fn emit_event(&mut self, event: MessageEvent);
}

impl MessageContext for TurnContext<'_> {
    fn view(&self) -> ConversationView<'_> {
        self.conversation()
    }

    fn emit_event(&mut self, event: MessageEvent) {
        self.emit(event);
    }
}

impl MessageContext for StepContext<'_> {
    fn view(&self) -> ConversationView<'_> {
        self.conversation()
    }

    fn emit_event(&mut self, event: MessageEvent) {
        self.emit(event);
    }
}

impl Random {
    /// Emits the edits that `select` returns of the program.
    fn emit_edits(&self, ctx: &mut impl MessageContext, select: impl Fn(&TurnProgram) -> &Vec<Edit>) {
        let Run { program, naive } = &mut *self.run.lock().unwrap();
        naive.take_runtime_events(ctx.view());
        naive.compare(ctx.view());
        for edit in select(program) {
            ctx.emit_event(naive.apply(edit));
            naive.compare(ctx.view());
        }
    }
}
