//! Background turns: those that extensions, tools and agents start while the conversation is open.
// WAKE-01

use std::sync::Arc;

use goondan::agent::{BackgroundTurn, BackgroundTurns, TurnNotice};
use goondan::bundle::Agents;
use goondan::name::AgentName;
use goondan::store::InstanceId;
use goondan::{Agent, Error, Result};

use crate::output::first_line;

/// The number of characters of an input that are shown.
const MAX_INPUT: usize = 200;

/// The background turns of all agents, except those whose answer another agent waits for and tells.
pub(crate) struct Background(BackgroundTurns);

/// A turn to be printed, or the number of turns that cannot be.
pub(crate) enum Told {
    Turn(Arc<BackgroundTurn>),
    Missed(u64),
}

impl Background {
    /// # Errors
    /// There is no agent called `name`.
    pub(crate) fn of(agents: &Agents, name: &AgentName) -> Result<Self> {
        let agent = agents.get(name.as_str()).ok_or_else(|| Error::msg("a built bundle has its agents"))?;
        let mut background = Self(agent.subscribe_turns());
        background.follow(agents.iter());
        Ok(background)
    }

    /// Adds agents that a reload has built.
    pub(crate) fn follow<'a>(&mut self, agents: impl Iterator<Item = &'a Agent>) {
        agents.for_each(|agent| self.0.follow(agent));
    }

    /// Waits for the next turn to print.
    pub(crate) async fn next(&mut self) -> Told {
        loop {
            match self.0.next().await.map(told) {
                Some(Some(told)) => return told,
                Some(None) => {}
                // The conversation has no agent any more.
                None => std::future::pending().await,
            }
        }
    }

    /// Waits for the next turn to print that runs or is queued already, or that such a turn starts. Returns `None` when
    /// there is none.
    pub(crate) async fn next_pending(&mut self) -> Option<Told> {
        loop {
            if let Some(told) = told(self.0.next_pending().await?) {
                return Some(told);
            }
        }
    }
}

fn told(notice: TurnNotice) -> Option<Told> {
    match notice {
        TurnNotice::Ended(turn) => turn.input.reply_to.is_none().then_some(Told::Turn(turn)),
        TurnNotice::Missed(turns) => Some(Told::Missed(turns)),
        _ => None,
    }
}

impl Told {
    /// Returns what is printed above the answer: who asked whom for what, as seen from the conversation `own`. The
    /// error of a failed turn is in the log.
    pub(crate) fn heading(&self, own: &InstanceId) -> String {
        let turn = match self {
            Self::Turn(turn) => turn,
            Self::Missed(turns) => return format!("{turns} turns in the background were too fast to be shown"),
        };
        let BackgroundTurn { agent, instance, input, outcome, .. } = &**turn;
        let from = &input.source.name;
        let to = match (agent == &own.agent, instance == &own.key) {
            (true, true) if agent.as_str() == from => "itself".to_owned(),
            (_, true) => agent.to_string(),
            (_, false) => format!("{agent}:{instance}"),
        };
        let text = first_line(input.input.as_deref().unwrap_or_default(), MAX_INPUT);
        let failed = outcome.as_ref().err().map(|error| format!(" (failed with {})", error.code())).unwrap_or_default();
        format!("{from} to {to}: {text}{failed}")
    }

    /// Returns the answer, unless the turn failed.
    pub(crate) fn answer(&self) -> Option<String> {
        match self {
            Self::Turn(turn) => turn.outcome.as_ref().ok().map(|result| result.text().into_owned()),
            Self::Missed(_) => None,
        }
    }
}
