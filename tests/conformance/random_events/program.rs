//! The programs: which events are emitted, and where.

use proptest::collection::vec;
use proptest::prelude::*;

/// One turn.
#[derive(Clone, Debug, Default)]
pub(super) struct TurnProgram {
    /// What the turn middleware emits.
    pub(super) around: Around,
    /// What the step middleware emits, step by step; all steps but the last call a tool.
    pub(super) steps: Vec<Around>,
    /// Whether the turn middleware ends with an error.
    pub(super) fails: bool,
    /// Whether the conversation is closed and opened again after the turn.
    pub(super) restarts: bool,
}

/// What a middleware emits around `next`.
#[derive(Clone, Debug, Default)]
pub(super) struct Around {
    pub(super) before: Vec<Edit>,
    pub(super) after: Vec<Edit>,
}

/// One event. Numbers pick among the ids that were ever used, so that targets are often gone, or among the unused ones.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    Append(NewId),
    Replace(usize, Option<NewId>),
    Remove(usize),
    Truncate,
}

/// The id of a message that comes in.
#[derive(Clone, Debug)]
pub(super) enum NewId {
    Fresh,
    /// One that was used before and is free again, if there is one.
    Former(usize),
}

/// One to four turns.
pub(super) fn programs() -> impl Strategy<Value = Vec<TurnProgram>> {
    vec(turn(), 1..=4)
}

fn turn() -> impl Strategy<Value = TurnProgram> {
    (around(), vec(around(), 1..=3), prop::bool::weighted(0.2), prop::bool::weighted(0.5))
        .prop_map(|(around, steps, fails, restarts)| TurnProgram { around, steps, fails, restarts })
}

fn around() -> impl Strategy<Value = Around> {
    (vec(edit(), 0..5), vec(edit(), 0..5)).prop_map(|(before, after)| Around { before, after })
}

fn edit() -> impl Strategy<Value = Edit> {
    let any = 0..64_usize;
    prop_oneof![
        4 => new_id().prop_map(Edit::Append),
        3 => (any.clone(), prop::option::of(new_id())).prop_map(|(target, id)| Edit::Replace(target, id)),
        3 => any.prop_map(Edit::Remove),
        1 => Just(Edit::Truncate),
    ]
}

fn new_id() -> impl Strategy<Value = NewId> {
    prop_oneof![3 => Just(NewId::Fresh), 1 => (0..64_usize).prop_map(NewId::Former)]
}
