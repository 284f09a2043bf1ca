//! A turn whose calls wait for decisions.
// ASK-01, ASK-02

use goondan_core::{
    AgentEvent, Decision, Error, ErrorCode, OnInput, Result, Secret, Timestamp, ToolCallId, Verdict, Wait,
};
use serde_json::{Map, Value, json};

use super::JournaledConversation;
use crate::live::{check_value, invalid, not_waiting, taken};
use crate::ports::store::{Durability, Facts, Suspend, TurnOutcome};

/// The metadata key of a message with the result of a call that was decided: the decisions.
pub(in crate::turn) const DECISIONS: &str = "decisions";

impl JournaledConversation {
    /// Whether calls of the step have waited.
    #[inline]
    pub(in crate::turn) fn have_waited(&self) -> bool {
        !self.facts.waits.is_empty()
    }

    /// Returns the decisions about a call, for the metadata of its result; without the values, which questions expect.
    pub(in crate::turn) fn decisions_about(&self, call: &ToolCallId) -> Option<Value> {
        let wait = self.facts.waits.iter().find(|wait| wait.call == *call)?;
        let decisions = wait.questions.iter().filter_map(|asked| self.facts.answer(wait, asked));
        let told = decisions.map(|decision| {
            let mut told = json!({ "verdict": if decision.is_rejection() { "reject" } else { "accept" } });
            told["extension"] = json!(decision.question.as_ref().map(|question| &question.extension));
            told["at"] = json!(decision.at);
            if let Some(by) = &decision.by {
                told["by"] = json!(by);
            }
            if decision.args().is_some() {
                told["edited"] = true.into();
            }
            told
        });
        Some(told.collect())
    }

    /// Takes in the calls of the step that wait, and the state at this moment. The turn is suspended when its layers
    /// have returned: their own result is not used.
    pub(in crate::turn) fn wait_for(&mut self, waits: Vec<Wait>) {
        self.suspending = Some(waits);
        if let Some(taken) = self.states.take_unrecorded() {
            self.suspended_state.extend(taken.state);
        }
    }

    /// Whether the turn that runs is about to be suspended.
    #[inline]
    pub(crate) fn is_suspending(&self) -> bool {
        self.suspending.is_some()
    }

    /// Returns the calls that the turn which runs is about to wait for.
    pub(in crate::turn) fn suspending(&self) -> Vec<Wait> {
        self.suspending.iter().flatten().map(|wait| self.facts.with_open(wait)).collect()
    }

    /// Stores which calls wait. If that fails, the turn does not wait, and none of them has run.
    pub(crate) async fn suspend(&mut self) -> Result<()> {
        let (waits, mut state) =
            (self.suspending.take().unwrap_or_default(), std::mem::take(&mut self.suspended_state));
        let Some(open) = &self.open_turn else { return Ok(()) };
        let outside = self.states.take_outside();
        if let Some(taken) = &outside {
            state.extend(taken.state.clone());
        }
        let suspended = self.journal.suspend(Suspend::new(&open.id, &state).waits(&waits)).await;
        match self.notice(suspended) {
            Ok(()) => {
                waits.iter().filter(|wait| wait.withdrawn).for_each(|wait| _ = self.started.remove(&wait.call));
                self.facts.suspended(waits, state);
                Ok(())
            }
            Err(error) => {
                if let Some(taken) = outside {
                    self.states.give_back(taken);
                }
                Err(error)
            }
        }
    }

    /// Returns the calls that wait for a decision, each with its open questions.
    pub(crate) fn open_waits(&self) -> Vec<Wait> {
        self.waits().map(|wait| self.facts.with_open(wait)).collect()
    }

    /// Returns the calls of the open turn that wait for a decision.
    pub(crate) fn waits(&self) -> impl Iterator<Item = &Wait> {
        let open = self.open_turn.as_ref().filter(|open| open.ended.is_none());
        open.into_iter().flat_map(|_| self.facts.undecided())
    }

    /// Whether the open turn waits for a decision.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits().next().is_some()
    }

    /// Returns when the first of the calls that wait expires.
    pub(crate) fn expires(&self) -> Option<Timestamp> {
        self.waits().filter_map(|wait| wait.expires).min()
    }

    /// Takes decisions: all of them or none. `check_args` checks the arguments that one sets.
    ///
    /// # Errors
    /// `E_NOT_WAITING`, `E_DECISION_TAKEN`, `E_DECISION_INVALID`; then nothing has changed. The errors of the store.
    // ASK-02
    pub(crate) async fn decide(
        &mut self,
        decisions: Vec<Decision>,
        check_args: impl Fn(&Wait, &Map<String, Value>) -> Result<()>,
    ) -> Result<()> {
        self.is_back();
        if self.open_turn.is_none() || self.facts.waits.is_empty() {
            return Err(not_waiting(decisions.first()));
        }
        let known = self.facts.decisions.len();
        let mut facts = self.facts.of_questions();
        for decision in decisions {
            facts.decided(checked(&facts, decision, &check_args)?);
        }
        self.take(facts.decisions.split_off(known)).await
    }

    async fn take(&mut self, decisions: Vec<Decision>) -> Result<()> {
        let stored: Vec<_> = decisions.iter().map(|decision| self.facts.storable(decision)).collect();
        let recorded = self.journal.decide(&stored);
        self.notice(recorded)?;
        for decision in &decisions {
            if let (Some(question), Verdict::Accept { value, .. }) = (self.facts.question(decision), &decision.verdict)
            {
                self.secrets.extend(question.secrets_in(value).into_iter().map(Secret::new));
            }
        }
        // Before they are synced: they may be on the disk also if that fails.
        decisions.into_iter().for_each(|decision| self.facts.decided(decision));
        self.flush(Durability::Synced).await
    }

    /// Rejects the calls whose time is over at `now`, which is not asked for unless a call can expire. Returns whether
    /// there are some.
    pub(crate) async fn expire(&mut self, now: impl FnOnce() -> Timestamp) -> Result<bool> {
        if self.expires().is_none() {
            return Ok(false);
        }
        let now = now();
        let is_over = |wait: &&Wait| wait.expires.is_some_and(|expires| expires <= now);
        let over: Vec<_> = self.waits().filter(is_over).cloned().collect();
        if over.is_empty() {
            return Ok(false);
        }
        self.is_back();
        let reject = |wait: &Wait| {
            let time = wait.expires.map(|expires| expires.since(wait.since)).unwrap_or_default();
            let reason = format!("nobody decided within {}", humantime::format_duration(time));
            self.facts.open(wait).next().map(|asked| Decision::reject(wait.call.clone(), reason).of(asked.by.clone()))
        };
        let decisions = over.iter().filter_map(reject).collect();
        self.take(decisions).await.map(|()| true)
    }

    /// Lets another event have its turn, if the open one waits: rejects its calls and closes it, if all questions say
    /// that an input does so.
    ///
    /// # Errors
    /// `E_INSTANCE_SUSPENDED` with the waits if one of them does not say so, if the event is no input of a person, or
    /// was made before the question; the errors of the store.
    pub(crate) async fn make_way(&mut self, event: &AgentEvent) -> Result<()> {
        if !self.is_waiting() {
            return Ok(());
        }
        let gives_way = |wait: &Wait| {
            event.created_at > wait.since
                && self.facts.open(wait).all(|asked| asked.question.on_input == OnInput::Reject)
        };
        if !is_of_person(event) || !self.waits().all(gives_way) {
            return Err(suspended(self.waits()));
        }
        let reason = "the user said something else";
        let rejected = |wait: &Wait| {
            self.facts.open(wait).next().map(|asked| Decision::reject(wait.call.clone(), reason).of(asked.by.clone()))
        };
        let mut decisions: Vec<_> = self.waits().filter_map(rejected).collect();
        let is_known = |call: &_| self.facts.waits.iter().any(|wait| wait.call == *call);
        let held = self.conversation.unanswered_calls().into_iter().map(|call| call.tool_call_id);
        decisions.extend(held.filter(|call| !is_known(call)).map(|call| Decision::reject(call, reason)));
        self.take(decisions).await?;
        self.end_turn(&TurnOutcome::interrupted(self.open_event().cloned())).await
    }
}

/// Returns the decision with its question, if it can be taken.
fn checked(
    facts: &Facts,
    mut decision: Decision,
    check_args: impl Fn(&Wait, &Map<String, Value>) -> Result<()>,
) -> Result<Decision> {
    let Some(wait) = facts.waits.iter().find(|wait| wait.call == decision.call) else {
        return Err(not_waiting(Some(&decision)));
    };
    if decision.verdict == Verdict::Withheld {
        return Err(invalid(&decision, "it has no value"));
    }
    if let Some(first) = facts.rejection(&wait.call) {
        return Err(taken(first));
    }
    let mut open = facts.open(wait);
    let asked = match &decision.question {
        Some(id) => {
            let asked = wait.questions.iter().find(|asked| asked.by == *id);
            let asked = asked.ok_or_else(|| invalid(&decision, "no such question was asked about it"))?;
            match facts.answer(wait, asked) {
                Some(first) => return Err(taken(&facts.storable(first))),
                None => asked,
            }
        }
        None => match (open.next(), open.next()) {
            (Some(asked), None) => asked,
            // A call that does not run needs no more decisions.
            (Some(asked), _) if decision.is_rejection() => asked,
            (Some(_), _) => return Err(invalid(&decision, "it has several questions, and the decision names none")),
            (None, _) => {
                let mut answers = wait.questions.iter().filter_map(|asked| facts.answer(wait, asked));
                let first = answers.next_back().map(|first| facts.storable(first));
                return Err(first.map_or_else(|| not_waiting(Some(&decision)), |first| taken(&first)));
            }
        },
    };
    check_value(&decision, &asked.question)?;
    if let Some(args) = decision.args() {
        check_args(wait, args).map_err(|error| invalid(&decision, &error.message()))?;
    }
    decision.question = Some(asked.by.clone());
    Ok(decision)
}

/// Whether a person has made the input, and not another agent, a delegation or a timer.
fn is_of_person(event: &AgentEvent) -> bool {
    event.source.kind != "agent" && event.wakings == 0 && event.callers.is_empty() && event.to_content().is_some()
}

/// Returns the error for an input while the turn waits.
#[cold]
pub(crate) fn suspended<'w>(waits: impl Iterator<Item = &'w Wait>) -> Error {
    let waits: Vec<_> = waits.map(Wait::masked).collect();
    let calls: Vec<_> = waits.iter().map(|wait| format!("`{}` ({})", wait.tool, wait.call)).collect();
    let message = format!("the turn waits for a decision about {}", calls.join(", "));
    let error =
        Error::new(ErrorCode::INSTANCE_SUSPENDED, message).suggest("decide about the calls first: `Instance::decide`");
    // Details are no objects.
    match serde_json::to_string(&waits) {
        Ok(waits) => error.with_detail("waits", waits),
        Err(_) => error,
    }
}
