//! The questions of layers about one tool call, and the gate before the call runs.
// ASK-01, ASK-03

use std::sync::atomic::{AtomicBool, Ordering};

use goondan_core::{
    AskedQuestion, Decision, Error, ErrorCode, ExtensionName, LayerInfo, Question, QuestionId, Result, Shown, Verdict,
    Wait,
};
use serde_json::{Map, Value};

use crate::ports::store::Facts;

/// The questions about a call, and their decisions, when its layers run.
#[derive(Default)]
pub(super) struct Asking {
    /// The wait of the call, if the turn goes on after it.
    wait: Option<Wait>,
    /// The decisions about its questions.
    decided: Vec<Decided>,
    /// The arguments that the newest decision has set.
    edited: Option<Map<String, Value>>,
    /// Whether a decision has set arguments since the call was last asked about.
    is_edited_since: bool,
    /// The number of decisions of the turn.
    decisions: usize,
    /// The number of decisions about the call.
    rounds: usize,
    /// The questions of layers in this run.
    asked: Vec<(QuestionId, Question)>,
    /// Shown by layers of the call in this run.
    shown: Vec<Shown>,
}

/// The most that layers show of a call.
const MAX_SHOWN: usize = 8;
/// The most decisions about a call after which its handler may ask.
pub(super) const MAX_ROUNDS: u32 = 32;

/// A decision about a question of the wait.
struct Decided {
    question: QuestionId,
    decision: Decision,
    /// Whether the layer that has asked has read it in this run.
    is_read: AtomicBool,
}

/// Why a call is not run now.
pub(super) enum Waiting {
    /// It waits for decisions.
    Asked(Box<Wait>),
    /// A call before it waits. If it has waited itself, with the decisions so far.
    Held(Option<Box<Wait>>),
}

impl Asking {
    /// The questions of a call that has waited, with all `decisions` of the turn.
    #[cold]
    pub(super) fn going_on(wait: &Wait, decisions: &[Decision]) -> Self {
        let of_call = || decisions.iter().filter(|decision| decision.call == wait.call);
        let decided = wait.questions.iter().filter_map(|asked| {
            let decision = Facts::answer_in(decisions, wait, asked)?.clone();
            Some(Decided { question: asked.by.clone(), decision, is_read: AtomicBool::new(false) })
        });
        let round = wait.questions.iter().map(|asked| asked.after).max().unwrap_or_default();
        let since = decisions.iter().skip(round).filter(|decision| decision.call == wait.call);
        Self {
            decided: decided.collect(),
            edited: of_call().rev().find_map(Decision::args).cloned(),
            is_edited_since: since.into_iter().any(|decision| decision.args().is_some()),
            decisions: decisions.len(),
            rounds: of_call().count(),
            wait: Some(wait.clone()),
            asked: Vec::new(),
            shown: Vec::new(),
        }
    }

    /// Sets how many decisions the turn has: they are about earlier questions.
    pub(super) fn after(&mut self, decisions: usize) {
        self.decisions = decisions;
    }

    /// Returns the wait that the call has entered before.
    pub(super) fn before(&self) -> Option<&Wait> {
        self.wait.as_ref()
    }

    /// Returns the arguments that the layers start with instead of those of the model.
    pub(super) fn edited(&self) -> Option<&Map<String, Value>> {
        self.edited.as_ref()
    }

    /// Takes a question. One that is decided is read by that.
    pub(super) fn ask(&mut self, question: Question, layer: &LayerInfo) {
        let id = QuestionId::new(layer.extension.clone(), layer.function.clone(), question.name.clone());
        if let Some(decided) = self.decided.iter().find(|decided| decided.question == id) {
            decided.is_read.store(true, Ordering::Relaxed);
            return;
        }
        match self.asked.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = question,
            None => self.asked.push((id, question)),
        }
    }

    /// Adds something to the preview of the call.
    pub(super) fn show(&mut self, shown: Shown) {
        if self.shown.len() < MAX_SHOWN {
            self.shown.push(shown.cleaned());
        }
    }

    /// Returns whether the call is asked about, or was before it went on.
    pub(super) fn is_asked(&self) -> bool {
        !self.asked.is_empty() || self.wait.is_some()
    }

    /// Returns the decisions about the questions of a layer, which has read it now.
    pub(super) fn decisions_of(&self, layer: &LayerInfo) -> Vec<Decision> {
        let is_of_layer =
            |id: &QuestionId| id.extension == layer.extension && id.function.as_str() == layer.function.as_ref();
        let of_layer = self.decided.iter().filter(|decided| is_of_layer(&decided.question));
        of_layer.inspect(|decided| decided.is_read.store(true, Ordering::Relaxed)).map(Decided::with_id).collect()
    }

    /// Returns the decisions about the questions of the handler.
    // ASK-04
    pub(super) fn decisions_of_handler(&self) -> Vec<Decision> {
        let of_handler = |decided: &&Decided| self.asked_before(&decided.question).is_some_and(|it| it.of_handler);
        self.decided.iter().filter(of_handler).map(Decided::with_id).collect()
    }

    fn asked_before(&self, id: &QuestionId) -> Option<&AskedQuestion> {
        self.wait.iter().flat_map(|wait| &wait.questions).find(|asked| asked.by == *id)
    }

    /// Returns the wait that a call enters whose handler asks. `begin` is a wait without questions.
    ///
    /// # Errors
    /// `E_TOOL_ASKS` when the handler asks a decided question again, or too much.
    // ASK-04
    pub(super) fn wait_of_handler(&self, id: QuestionId, question: Question, mut begin: Wait) -> Result<Box<Wait>> {
        let before = self.asked_before(&id);
        if before.is_some_and(|asked| asked.question == question) {
            return Err(Error::new(ErrorCode::TOOL_ASKS, "the tool has asked again what is decided")
                .suggest("let its handler read the decision: `ctx.decision`, or `ctx.decision_of` if it has a name"));
        }
        let known = self.wait.iter().flat_map(|wait| &wait.questions);
        let kept: Vec<_> = known.filter(|asked| asked.by != id).cloned().collect();
        if self.rounds >= MAX_ROUNDS as usize {
            return Err(asks_too_often());
        }
        begin = begin.question(AskedQuestion::of_handler(id, question).after(self.decisions));
        // Those that are decided do not expire any more.
        begin.questions.extend(kept);
        begin.shown.clone_from(&self.shown);
        Ok(Box::new(begin))
    }

    /// Returns whether an extension has asked about the call, now or before.
    pub(super) fn has_asked(&self, extension: &ExtensionName) -> bool {
        let before = self.wait.iter().flat_map(|wait| &wait.questions).map(|asked| &asked.by);
        before.chain(self.asked.iter().map(|(id, _)| id)).any(|id| id.extension == *extension)
    }

    /// Returns the wait that the call has to enter before it may run with `args`, `None` if all is decided. `begin`
    /// returns one without questions.
    ///
    /// # Errors
    /// `E_TOOL_REJECTED` when the call must not run.
    pub(super) fn wait(
        &self,
        args: &Map<String, Value>,
        begin: impl FnOnce(&Map<String, Value>) -> Wait,
    ) -> Result<Option<Box<Wait>>> {
        if let Some(Verdict::Reject { reason, .. }) =
            self.decided.iter().map(|decided| &decided.decision.verdict).find(is_no)
        {
            return Err(Error::rejected(reason.clone()));
        }
        let (mut kept, mut open, mut is_other) = (Vec::new(), Vec::new(), false);
        for asked in self.wait.iter().flat_map(|wait| &wait.questions) {
            let decided = self.decided.iter().find(|decided| decided.question == asked.by);
            let Some(decided) = decided else {
                open.push(asked.clone());
                continue;
            };
            // The handler of the tool reads its decision when it runs.
            if !asked.of_handler && !decided.is_read.load(Ordering::Relaxed) {
                return Err(gone(&asked.by));
            }
            let is_approved = match (decided.decision.args(), &self.wait) {
                (Some(edited), _) => edited == args,
                (None, Some(wait)) => wait.args == *args && wait.shown == self.shown,
                (None, None) => false,
            };
            if is_approved {
                kept.push(asked.clone());
            } else {
                is_other = true;
                open.push(asked.clone().after(self.decisions));
            }
        }
        if is_other && !self.is_edited_since && self.wait.as_ref().is_some_and(|wait| wait.again) {
            let message = "what was approved is not what would run: it is something else each time";
            return Err(Error::rejected(message));
        }
        for (id, question) in self.asked.iter().cloned() {
            if !open.iter().any(|asked| asked.by == id) {
                open.push(AskedQuestion::new(id, question).after(self.decisions));
            }
        }
        if open.is_empty() {
            return Ok(None);
        }
        let mut wait = open.into_iter().fold(begin(args), Wait::question);
        // Those that are decided do not expire any more.
        wait.questions.extend(kept);
        wait.again = is_other;
        wait.shown.clone_from(&self.shown);
        Ok(Some(Box::new(wait)))
    }
}

impl Decided {
    fn with_id(&self) -> Decision {
        self.decision.clone().of(self.question.clone())
    }
}

fn is_no(verdict: &&Verdict) -> bool {
    matches!(verdict, Verdict::Reject { .. })
}

#[cold]
fn gone(by: &QuestionId) -> Error {
    let QuestionId { extension, function, .. } = by;
    Error::rejected(format!(
        "the extension `{extension}` has asked about the call, and `{function}` did not read the decision now"
    ))
}

/// Returns the error of a handler that asks too often.
#[cold]
pub(super) fn asks_too_often() -> Error {
    Error::new(ErrorCode::TOOL_ASKS, format!("the tool has asked {MAX_ROUNDS} times about one call"))
        .suggest("let its handler ask for all at once: a form, by `Question::expecting`")
}

/// Returns the error of a handler that asks without saying so.
#[cold]
pub(super) fn undeclared() -> Error {
    Error::new(ErrorCode::TOOL_ASKS, "the tool asks, and its declaration does not say so")
        .suggest("write `#[tool(asks)]`")
}

/// Returns the error that the call has while it waits.
#[cold]
pub(super) fn waiting(waiting: &Waiting) -> Error {
    let message = match waiting {
        Waiting::Asked(_) => "the call waits for a decision, and has not run",
        Waiting::Held(_) => "a call before it waits for a decision, and it has not run",
    };
    Error::new(ErrorCode::TOOL_WAITING, message).suggest("pass the result on: the call goes on once it is decided")
}
