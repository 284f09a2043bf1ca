//! RESUME-01: the turns of all cases are interrupted at their writes, and are in the end as if they were not.

use std::collections::BTreeSet;

use goondan_breaking::{Break, Case, Fault, GoesOn, Interruption, Ran, inventory, run_case};
use goondan_covers::covers;
use goondan_libraries::is_long_run;

use crate::linkage::library;

/// The cases whose turns are different after an interruption, with the reason.
const DIFFERENT: [(&str, &str); 25] = [
    ("acting::delegate_starts_a_turn", "the turn that was delegated begins first, and closes the open one"),
    ("conversation::what_a_step_middleware_emits", "a layer refuses a conversation that is not empty"),
    ("idle::", "an extension counts its openings in its state"),
    ("idle_others::", "an extension counts its openings in its state"),
    ("next::a_result_of_an_earlier_turn", "a layer keeps a result in memory"),
    ("progress::progress_that_nothing_watches", "the stream of events that it waits for ends with the opening"),
    ("projected::an_attempt_starts_without", "a layer asks the model again, which has only two answers"),
    ("projected::edits_apply_in_the_order", "a layer that truncates refuses a step that is over"),
    ("reload::", "an extension counts its openings in its state"),
    ("reload_at_step::", "the next opening has the new extensions from the first step on"),
    ("resumed::", "the same by hand"),
    ("rough::a_deadline_drops", "a layer hangs the first time that it runs in an opening"),
    ("tokens::", "the arguments of a call have the number of the run"),
    ("tools_late::", "a tool that was registered late is gone with its opening"),
    ("values::extensions_ask", "a layer of the turn asks a model, which has only one answer"),
    ("shared_state::a_change_that_fails", "two agents have one name, and a store each"),
    ("skip::a_layer_that_dropped", "a layer drops `next`, and the write in it"),
    ("skip::a_result_of_another_run", "a layer asks the model again, which has only two answers"),
    ("program_events::a_program_answers", "the program answers once"),
    ("wake::", "turns begin by themselves, and close the open one"),
    ("agents::a_notice_is_accepted", "the turn of the notice is interrupted, and does not run again"),
    ("agents::files_go_to_another", "an answer that comes later is lost with its opening"),
    ("agents::the_answer_to_an_asynchronous", "the answer may have arrived"),
    ("asking::a_later_answer", "an answer that comes later is lost with its opening"),
    ("asking::an_asker_that_fails", "a layer does not ask in a turn that was resumed"),
];

/// The sum of all runs.
#[derive(Debug, Default)]
struct Sum {
    cases: BTreeSet<&'static str>,
    turns: usize,
    writes: usize,
    interrupted: usize,
    /// Those of them that were interrupted more than once.
    again: usize,
    different: Vec<String>,
    /// The cases that need the store that they have set.
    left_out: BTreeSet<&'static str>,
}

impl Sum {
    /// Interrupts the turns of the cases at `most` of the writes of each, evenly spread.
    fn of(
        cases: impl Iterator<Item = &'static Case>,
        most: usize,
        interruptions: impl Fn(usize) -> Vec<Interruption>,
    ) -> Self {
        let mut sum = Self::default();
        for case in cases.filter(|case| DIFFERENT.iter().all(|(name, _)| !case.name.contains(name))) {
            for is_loaded in [false, true] {
                sum.add(case, is_loaded, most, &interruptions);
            }
        }
        sum
    }

    fn add(
        &mut self,
        case: &'static Case,
        is_loaded: bool,
        most: usize,
        interruptions: impl Fn(usize) -> Vec<Interruption>,
    ) {
        let name = format!("{} {}", case.name, if is_loaded { "loaded" } else { "linked" });
        let whole = match run_case(case, is_loaded, Interruption::default()) {
            Ran::Whole(turns) => turns,
            Ran::Panicked(_) => {
                self.left_out.insert(case.name);
                return;
            }
            other => return self.differs(format!("{name}: {other:?}")),
        };
        let writes = whole.last().map_or(0, |turn| turn.writes);
        if writes == 0 {
            return;
        }
        self.cases.insert(case.name);
        self.turns += whole.len();
        self.writes += writes;
        // Each run goes up to the write: those of a case together are about as long as those of others.
        let most = most.min((2_000 / writes).max(1));
        for at in (1..=writes).step_by(writes.div_ceil(most)) {
            for interruption in interruptions(at) {
                self.interrupted += 1;
                let what = format!("{name}, {interruption:?}");
                match run_case(case, is_loaded, interruption) {
                    Ran::Interrupted { index, times, turn } => {
                        self.again += usize::from(times > 1);
                        if !turn.is_as(&whole[index]) {
                            self.differs(format!("{what}:\n  {:?}\n  {turn:?}", whole[index]));
                        }
                    }
                    other => self.differs(format!("{what}: {other:?}")),
                }
            }
        }
    }

    /// Takes in a difference, and tells it at once: a long run may take an hour.
    fn differs(&mut self, what: String) {
        eprintln!("{what}");
        self.different.push(what);
    }

    /// Asserts that there was no difference, and enough that could have been different.
    fn check(&self, cases: usize) {
        let Self { cases: found, turns, writes, interrupted, again, different, left_out } = self;
        println!("{} cases, {turns} turns, {writes} writes; {} cases left out", found.len(), left_out.len());
        println!("{interrupted} interrupted, {again} of them more than once");
        assert_eq!(*different, [""; 0], "{} of {interrupted}", different.len());
        assert!(found.len() >= cases, "{self:?}");
    }
}

/// Returns the registered cases, or each `every`th of them.
fn cases(every: usize) -> impl Iterator<Item = &'static Case> {
    // The time of a run must not have that of its build.
    library();
    let mut all: Vec<&Case> = inventory::iter::<Case>.into_iter().collect();
    all.sort_by_key(|case| case.name);
    let every = if is_long_run() { 1 } else { every };
    all.into_iter().skip(every / 2).step_by(every)
}

const KINDS: [Break; 2] = [Break::Before, Break::After];
const WAYS: [GoesOn; 2] = [GoesOn::InTheSameProcess, GoesOn::AfterANewOpening];

#[test]
#[covers("RESUME-01")]
fn every_case_goes_on_after_every_write() {
    let most = if is_long_run() { 20 } else { 2 };
    let sum = Sum::of(cases(12), most, |at| {
        let all = KINDS.into_iter().flat_map(|kind| WAYS.map(|goes_on| (kind, goes_on)));
        all.map(|(kind, goes_on)| Interruption { breaks: vec![(at, kind)], goes_on, ..Interruption::default() })
            .collect()
    });
    sum.check(6);
}

/// It is interrupted a second time when it has gone on.
#[test]
#[covers("RESUME-01")]
fn every_case_goes_on_twice() {
    let most = if is_long_run() { 20 } else { 2 };
    let sum = Sum::of(cases(24), most, |at| {
        let [first, second] = [KINDS[at % 2], KINDS[at / 2 % 2]];
        let breaks = vec![(at, first), (at + 1 + at % 3, second)];
        WAYS.map(|goes_on| Interruption { breaks: breaks.clone(), goes_on, ..Interruption::default() }).to_vec()
    });
    sum.check(2);
    assert!(2 * sum.again > sum.interrupted, "{sum:?}");
}

#[test]
fn the_cases_that_are_different_exist() {
    for (name, reason) in DIFFERENT {
        assert!(inventory::iter::<Case>.into_iter().any(|case| case.name.contains(name)), "{name}: {reason}");
    }
}

/// A store that returns an event too many, or one too few, is noticed.
#[test]
#[covers("RESUME-01")]
fn a_store_that_keeps_too_much_or_too_little_is_noticed() {
    for fault in [Fault::OneTooMany, Fault::OneTooFew] {
        let names = ["catalogs::", "tool_conversation::", "effects::"];
        let some = cases(1).filter(|case| names.iter().any(|name| case.name.contains(name)));
        let sum = Sum::of(some, 8, |at| {
            let goes_on = GoesOn::AfterANewOpening;
            vec![Interruption { breaks: vec![(at, Break::After)], goes_on, fault: Some(fault) }]
        });
        assert!(!sum.different.is_empty(), "{fault:?}: {sum:?}");
    }
}
