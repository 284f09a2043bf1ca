//! CONV: random programs of message events, against a list that is kept as naively as the requirement reads:
//! `base + Σ events`.

mod naive;
mod program;

use std::cell::RefCell;

use goondan::prelude::*;
use goondan::testing::Chat;
use goondan::{ConversationView, FileStore, MemoryStore, ScriptItem, Store, json};
use goondan_covers::covers;
use proptest::test_runner::{Config, TestRunner};

use naive::Naive;
use program::{Edit, TurnProgram, programs};

thread_local! {
    /// What the extension does in the turn that runs, and what must come of it.
    static RUN: RefCell<Run> = RefCell::default();
}

#[derive(Default)]
struct Run {
    program: TurnProgram,
    naive: Naive,
}

/// Emits what the program says, and compares every view with the naive list after each event.
struct Random;

#[goondan::extension(name = "random")]
impl Random {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        follow(ctx, |program| &program.around.before);
        let result = next.run(ctx).await?;
        follow(ctx, |program| &program.around.after);
        if RUN.with_borrow(|run| run.program.fails) { Err(Error::msg("the program ends so")) } else { Ok(result) }
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let index = ctx.step_index() as usize;
        follow(ctx, |program| &program.steps[index].before);
        RUN.with_borrow_mut(|run| run.naive.expect_request());
        let result = next.run(ctx).await?;
        follow(ctx, |program| &program.steps[index].after);
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

/// Emits the edits of one place of the program.
fn follow(ctx: &mut impl Talks, place: impl Fn(&TurnProgram) -> &Vec<Edit>) {
    RUN.with_borrow_mut(|Run { program, naive }| {
        naive.hear_runtime(ctx.view());
        naive.compare(ctx.view());
        for edit in place(program) {
            ctx.say(naive.apply(edit));
            naive.compare(ctx.view());
        }
    });
}

/// Runs `program`, turn by turn, and compares what the model was sent, what is stored, and what is there after a restart.
async fn run(program: &[TurnProgram], store: impl Store) {
    RUN.take();
    let script = program.iter().flat_map(|turn| {
        let calls = turn.steps[1..].iter().map(|_| ScriptItem::call("no__tool", json!({})));
        calls.chain([ScriptItem::say("answer")])
    });
    let script: Vec<_> = script.collect();
    let mut chat =
        Chat::with::<Random>(json!({})).script(script).agent(|agent| agent.store(store)).start().await.unwrap();
    for turn in program {
        RUN.with_borrow_mut(|run| {
            run.program = turn.clone();
            run.naive.begin_turn();
        });
        let outcome = chat.say("input").await;
        assert_eq!(outcome.is_err(), turn.fails, "{outcome:?}");
        let stored = chat.messages().await;
        RUN.with_borrow_mut(|run| run.naive.end_turn(&stored));
        if turn.restarts {
            chat.restart().await.unwrap();
            RUN.with_borrow_mut(|run| run.naive.reopen());
            assert_eq!(chat.messages().await, stored);
        }
    }
    let sent: Vec<_> = chat.requests().into_iter().map(|request| request.messages).collect();
    let orphans: Vec<_> = chat.logs().iter().filter_map(|line| line.fields.get("orphans")?.as_u64()).collect();
    let misses = chat.logs().iter().filter(|line| line.fields.contains_key("target_id")).count();
    RUN.with_borrow(|run| {
        assert_eq!(sent, run.naive.requests());
        assert_eq!(orphans, run.naive.orphans(), "what is kept from the model is reported once");
        assert_eq!(misses, run.naive.misses(), "every event without a target is reported, and no other");
    });
}

fn check<S: Store>(cases: u32, store: impl Fn() -> (S, Option<tempfile::TempDir>)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&programs(), |program| {
        let (store, _dir) = store();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run(&program, store));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
#[covers("CONV-01", "CONV-02", "CONV-03", "CONV-04", "CONV-06", "CONV-07", "CONV-11", "PAIR-01")]
fn the_conversation_is_the_sum_of_its_events_whatever_they_are() {
    check(200, || (MemoryStore::new(), None));
}

#[test]
#[covers("CONV-04", "CONV-07")]
fn the_sum_is_what_the_files_hold() {
    check(40, || {
        let dir = tempfile::tempdir().unwrap();
        (FileStore::open(dir.path()).unwrap(), Some(dir))
    });
}
