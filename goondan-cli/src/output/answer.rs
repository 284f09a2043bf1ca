//! Prints the result of a turn: its answer as text, or the whole result as one line of JSON.

use std::io;

use goondan::Result;
use goondan::agent::{BackgroundTurn, TurnStream};
use goondan::middleware::{FinishReason, TurnResult};
use goondan::wire::{TurnEnd, Update, Updates};

use super::{Stream, waits};

/// The format of printed turns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerFormat {
    Text,
    Json,
    /// As JSON, after the lines of [`stream`].
    Stream,
}

/// Prints the updates of `turn` to standard output, and returns its result. When standard output fails, the turn
/// goes on; printing its result fails too, and that error is reported.
pub(crate) async fn stream(mut turn: TurnStream) -> Result<TurnResult> {
    let (mut updates, mut open) = (Updates::default(), true);
    while let Some(update) = turn.next().await {
        // The content of a message is told by pieces, events and the end of the turn.
        let update = updates.next(update).filter(|update| open && !is_message(update));
        if let Some(update) = update {
            open = print_line(update.to_json()).is_ok();
        }
    }
    turn.finish().await
}

fn is_message(update: &Update) -> bool {
    match update {
        Update::Child { update, .. } => is_message(update),
        update => matches!(update, Update::Message { .. }),
    }
}

/// Prints the result of a turn to standard output; `background` if the turn is one. Of a failed turn,
/// [`AnswerFormat::Text`] prints nothing: the caller reports the error on standard error in both formats.
pub(crate) fn print(
    outcome: &Result<TurnResult>,
    format: AnswerFormat,
    background: Option<&BackgroundTurn>,
) -> io::Result<()> {
    match (format, outcome) {
        (AnswerFormat::Text, Ok(turn)) => {
            if turn.finish_reason() != FinishReason::Suspended {
                Stream::Out.data(format!("{}\n", turn.text()).as_bytes())?;
            }
            report_incomplete(turn);
            Ok(())
        }
        (AnswerFormat::Text, Err(_)) => Ok(()),
        (AnswerFormat::Json, outcome) => print_line(serde_json::to_string(&turn_end(outcome, background))),
        (AnswerFormat::Stream, outcome) => print_line(Update::Turn(Box::new(turn_end(outcome, background))).to_json()),
    }
}

/// Says on standard error that the answer was cut off, if it was, or the decisions that the turn waits for.
// CUT-01, ASK-01
pub(crate) fn report_incomplete(turn: &TurnResult) {
    match turn.finish_reason() {
        FinishReason::Length => super::eprint(
            "the answer was cut off at the model's limit of tokens: `maxOutputTokens` of the model raises it\n",
        ),
        FinishReason::Suspended => {
            super::eprint("the turn waits for a decision; `goondan instance decide` takes it:\n");
            super::eprint_styled(&waits::page(turn.waits()));
        }
        _ => {}
    }
}

fn turn_end(outcome: &Result<TurnResult>, background: Option<&BackgroundTurn>) -> TurnEnd {
    let end = TurnEnd::of(outcome);
    match background {
        Some(turn) => end.in_background(turn),
        None => end,
    }
}

/// Prints a line of JSON to standard output.
pub(crate) fn print_line(line: serde_json::Result<String>) -> io::Result<()> {
    Stream::Out.data(format!("{}\n", line?).as_bytes())
}
