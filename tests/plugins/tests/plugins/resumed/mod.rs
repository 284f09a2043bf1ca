//! RESUME-01: the ready-made extensions in turns that are interrupted at each write and go on.

mod cases;
mod turn;

use goondan_breaking::{Break, GoesOn};
use goondan_covers::{both_linkages, covers};
use goondan_libraries::is_long_run;

use turn::{Case, Place, Seen};

/// The result of a call whose outcome is not known, because it had started when the turn was interrupted.
const UNKNOWN: &str = "E_TOOL_OUTCOME_UNKNOWN";

/// Compares a turn that was interrupted with one that was not. Returns whether a call has an unknown outcome.
fn compare(case: &Case, is_lost: bool, unbroken: &Seen, mut broken: Seen, which: &str) -> bool {
    (case.expected)(unbroken, &mut broken);
    let is_unknown = broken.messages.iter().chain(&broken.asked).any(|text| text.contains(UNKNOWN));
    if is_unknown {
        take_unknown(unbroken, &mut broken, which);
    }
    if is_lost {
        // What came after the write before is lost, and happens again.
        take_repeated(&unbroken.asked, &mut broken.asked, |_| true, which);
        take_repeated(&unbroken.ran, &mut broken.ran, |handler| !handler.starts_with("pay"), which);
    }
    assert_eq!(broken, *unbroken, "{which}");
    is_unknown
}

/// Checks that a call has not run, and that nothing else follows from that than what is read of its result. Makes
/// `broken` as if it had run.
fn take_unknown(unbroken: &Seen, broken: &mut Seen, which: &str) {
    // A summary counts its characters.
    let may_differ = |text: &String| text.contains(UNKNOWN) || text.contains("compaction.summary");
    assert_eq!(broken.messages.len(), unbroken.messages.len(), "{which}");
    for (broken, unbroken) in
        broken.messages.iter_mut().zip(&unbroken.messages).filter(|(broken, _)| may_differ(broken))
    {
        broken.clone_from(unbroken);
    }
    assert_eq!(broken.asked.len(), unbroken.asked.len(), "{which}");
    broken.asked.clone_from(&unbroken.asked);
    // Only those of the desk and of the skill log that they ran.
    if let Some(missing) = (0..unbroken.ran.len()).find(|at| broken.ran.get(*at) != Some(&unbroken.ran[*at])) {
        broken.ran.insert(missing, unbroken.ran[missing].clone());
    }
    broken.states.clone_from(&unbroken.states);
}

/// Takes out of `broken` what it has more often than `unbroken`, and `may` be repeated.
fn take_repeated(unbroken: &[String], broken: &mut Vec<String>, may: fn(&str) -> bool, which: &str) {
    let mut left = unbroken.iter().peekable();
    broken.retain(|text| {
        let is_next = left.next_if_eq(&text).is_some();
        assert!(is_next || unbroken.contains(text) && may(text), "{which}: {text}");
        is_next
    });
}

/// Runs each case with the breaks of each of `plans`, from each write of its turn on; unless tests may take long, one
/// in `sample` of these. Returns how many runs there were, and how many of them have a call with an unknown outcome.
async fn interrupt(goes_on: GoesOn, plans: &[&[Break]], sample: usize) -> (usize, usize) {
    let (mut runs, mut unknown) = (0, 0);
    let every = if is_long_run() { 1 } else { sample };
    for (number, case) in cases::cases().into_iter().enumerate() {
        let place = Place::new();
        let (unbroken, writes) = place.run(&case, &[], goes_on).await;
        assert!(unbroken.shows(case.shows), "{}: nothing has `{}`: {unbroken:#?}", case.name, case.shows);
        let pairs = writes.flat_map(|at| plans.iter().map(move |breaks| (at, *breaks)));
        for (at, breaks) in pairs.skip(number % every).step_by(every) {
            let plan: Vec<_> = breaks.iter().enumerate().map(|(next, kind)| (at + next, *kind)).collect();
            let (broken, _) = place.run(&case, &plan, goes_on).await;
            let which = format!("{}, write {at}, {breaks:?}, {goes_on:?}", case.name);
            unknown += usize::from(compare(&case, breaks.contains(&Break::Lost), &unbroken, broken, &which));
            runs += 1;
        }
    }
    (runs, unknown)
}

#[both_linkages]
#[covers("RESUME-01")]
async fn the_extensions_go_on_in_the_same_process() {
    let plans: [&[Break]; 4] = [&[Break::Before], &[Break::After], &[Break::Away], &[Break::AwayAfter]];
    let (runs, unknown) = interrupt(GoesOn::InTheSameProcess, &plans, 10).await;
    assert!(runs > 150 && unknown == 0, "{runs} runs, {unknown} unknown outcomes");
}

#[both_linkages]
#[covers("RESUME-01")]
async fn and_after_a_new_opening() {
    let (runs, unknown) = interrupt(GoesOn::AfterANewOpening, &[&[Break::Before], &[Break::After]], 6).await;
    assert!(runs > 125 && unknown > 4, "{runs} runs, {unknown} unknown outcomes");
}

#[both_linkages]
#[covers("RESUME-01")]
async fn and_when_they_are_interrupted_again() {
    let plans: [&[Break]; 2] = [&[Break::Before, Break::After], &[Break::After, Break::After, Break::Before]];
    let (runs, unknown) = interrupt(GoesOn::AfterANewOpening, &plans, 6).await;
    assert!(runs > 125 && unknown > 4, "{runs} runs, {unknown} unknown outcomes");
}

#[both_linkages]
#[covers("RESUME-01")]
async fn and_when_what_was_not_written_is_lost() {
    let (runs, unknown) = interrupt(GoesOn::AfterANewOpening, &[&[Break::Lost], &[Break::Lost, Break::Lost]], 6).await;
    assert!(runs > 125 && unknown > 4, "{runs} runs, {unknown} unknown outcomes");
}
