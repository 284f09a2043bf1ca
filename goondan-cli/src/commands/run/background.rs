//! Announcements of background turns.
// WAKE-01

use goondan::agent::{BackgroundTurn, BackgroundUpdate};
use goondan::store::InstanceId;

use crate::output::first_line;

/// The number of characters of an input that are shown.
const MAX_INPUT: usize = 200;

/// Returns the line above the answer: who asked whom for what, as seen from the conversation `own`. The error of a
/// failed turn is in the log.
pub(crate) fn heading(notice: &BackgroundUpdate, own: &InstanceId) -> String {
    let turn = match notice {
        BackgroundUpdate::Ended(turn) => turn,
        BackgroundUpdate::Missed(turns) => return format!("{turns} turns in the background were too fast to be shown"),
        _ => return String::new(),
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
