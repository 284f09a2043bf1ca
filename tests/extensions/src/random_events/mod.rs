//! Owns the extension that follows a program of events, and the naive list that it compares with what it sees.

mod naive;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use goondan::ConversationView;
use goondan::prelude::*;

pub use naive::Naive;
pub use program::{Around, Edit, NewId, TurnProgram};

/// What the extension does in the turn that runs, and what must come of it. It lies in a file, where the test and the extension
/// take turns in changing it.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Run {
    /// What the extension does.
    pub program: TurnProgram,
    /// What must come of it.
    pub naive: Naive,
}

impl Run {
    /// What lies at `path`.
    ///
    /// # Panics
    /// When that is nothing.
    pub fn read(path: &Path) -> Self {
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    /// Changes what lies at `path`; nothing there is a new run.
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

/// Emits what the program says, and compares every view with the naive list after each event.
pub struct Random {
    path: PathBuf,
    /// As it is in the turn that runs.
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
        self.follow(ctx, |program| &program.around.before);
        let result = next.run(ctx).await?;
        self.follow(ctx, |program| &program.around.after);
        let run = self.run.lock().unwrap();
        run.write(&self.path);
        if run.program.fails { Err(Error::msg("the program ends so")) } else { Ok(result) }
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let index = ctx.step_index() as usize;
        self.follow(ctx, |program| &program.steps[index].before);
        self.run.lock().unwrap().naive.expect_request();
        let result = next.run(ctx).await?;
        self.follow(ctx, |program| &program.steps[index].after);
        Ok(result)
    }
}

/// What the contexts of turns and steps have in common.
trait Talks {
    fn view(&self) -> ConversationView<'_>;
    fn say(&mut self, event: MessageEvent);
}

impl Talks for TurnContext<'_> {
    fn view(&self) -> ConversationView<'_> {
        self.conversation()
    }

    fn say(&mut self, event: MessageEvent) {
        self.emit(event);
    }
}

impl Talks for StepContext<'_> {
    fn view(&self) -> ConversationView<'_> {
        self.conversation()
    }

    fn say(&mut self, event: MessageEvent) {
        self.emit(event);
    }
}

impl Random {
    /// Emits the edits of one place of the program.
    fn follow(&self, ctx: &mut impl Talks, place: impl Fn(&TurnProgram) -> &Vec<Edit>) {
        let Run { program, naive } = &mut *self.run.lock().unwrap();
        naive.hear_runtime(ctx.view());
        naive.compare(ctx.view());
        for edit in place(program) {
            ctx.say(naive.apply(edit));
            naive.compare(ctx.view());
        }
    }
}
