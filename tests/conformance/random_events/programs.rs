//! Strategies for random programs.

use conformance_extensions::random_events::{Around, Edit, NewId, TurnProgram};
use proptest::collection::vec;
use proptest::prelude::*;

/// Generates one to four turns.
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
