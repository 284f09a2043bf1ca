//! Decides which step of a turn comes next, and when the turn is over. It does no IO.

use std::time::Duration;

use goondan_core::host::Repair;
use goondan_core::{Error, FinishReason};

use super::answer::no_usable_answer;
use super::valued::no_value;
use crate::policy::Policy;

/// A turn as a state machine: from the end of each step it determines the next action (F-TURN).
#[derive(Debug)]
pub(super) struct TurnMachine {
    policy: Policy,
    /// The number of steps that were started.
    steps: u32,
    /// The number of retries of a step in a row.
    retries: u32,
    /// The number of requests in a row for a corrected answer.
    repairs: u32,
}

/// The most requests in a row for a corrected answer before the turn ends, unless a reviewer says so (F-TURN).
const MAX_REPAIRS: u32 = 2;

/// The end of a step that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepEnd {
    /// No other step is wanted.
    Final,
    /// No other step is wanted, and the limit of tokens cut the answer off.
    Cut,
    /// Another step is wanted (PIPE-11).
    Another,
    /// The answer is not used, and the model is asked again.
    Repair(Repair),
}

/// The next action of the driver.
#[derive(Debug)]
pub(super) enum TurnAction {
    /// Run a step.
    Step {
        /// Its index, from 0 (CTX-11).
        index: u32,
        /// The number of the attempt: how often in a row a middleware has asked for a retry.
        attempt: u32,
        /// The wait before it.
        delay: Duration,
    },
    /// The turn is over.
    Finish(FinishReason),
    /// The turn failed.
    Fail(Error),
}

impl TurnMachine {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, steps: 0, retries: 0, repairs: 0 }
    }

    /// Returns the first action: a turn has at least one step.
    pub(super) fn start(&mut self) -> TurnAction {
        self.step(0, Duration::ZERO)
    }

    /// Returns the first action of a turn that goes on with the step `step`, before which the model was asked `repairs`
    /// times in a row to correct its answer.
    pub(super) fn go_on(&mut self, step: u32, repairs: u32) -> TurnAction {
        (self.steps, self.repairs) = (step, repairs);
        self.step(0, Duration::ZERO)
    }

    /// Returns the action after a step with this outcome.
    pub(super) fn step_ended(&mut self, outcome: Result<StepEnd, Error>) -> TurnAction {
        let limit_reached = self.steps >= self.policy.max_steps_per_turn.get();
        match outcome {
            Ok(StepEnd::Final) => TurnAction::Finish(FinishReason::TextResponse),
            Ok(StepEnd::Cut) => TurnAction::Finish(FinishReason::Length),
            Ok(StepEnd::Repair(repair)) if self.repairs >= repair.at_most.unwrap_or(MAX_REPAIRS) => {
                TurnAction::Fail(match &repair.attempt {
                    Some(attempt) => no_value(&repair.problem, attempt),
                    None => no_usable_answer(&repair.problem),
                })
            }
            Ok(_) if limit_reached => TurnAction::Finish(FinishReason::MaxSteps),
            Ok(end) => {
                self.retries = 0;
                self.repairs = if matches!(end, StepEnd::Repair(_)) { self.repairs + 1 } else { 0 };
                self.step(0, Duration::ZERO)
            }
            Err(error) => match error.retry_delay() {
                // PIPE-19: another attempt is a new step, never a second `next`.
                Some(delay) if !limit_reached && self.retries < self.policy.max_retries => {
                    self.retries += 1;
                    self.step(self.retries, delay)
                }
                _ => TurnAction::Fail(error),
            },
        }
    }

    /// Returns how many steps were started.
    pub(super) fn steps(&self) -> u32 {
        self.steps
    }

    fn step(&mut self, attempt: u32, delay: Duration) -> TurnAction {
        let index = self.steps;
        self.steps += 1;
        TurnAction::Step { index, attempt, delay }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn machine(steps: u32, retries: u32) -> TurnMachine {
        let max_steps_per_turn = NonZeroU32::new(steps).unwrap();
        TurnMachine::new(Policy { max_steps_per_turn, max_retries: retries, ..Policy::default() })
    }

    fn step(action: &TurnAction) -> Option<(u32, u32)> {
        match action {
            TurnAction::Step { index, attempt, .. } => Some((*index, *attempt)),
            TurnAction::Finish(_) | TurnAction::Fail(_) => None,
        }
    }

    #[test]
    fn steps_continue_while_there_are_tool_calls() {
        let mut machine = machine(32, 3);
        assert_eq!(step(&machine.start()), Some((0, 0)));
        assert_eq!(step(&machine.step_ended(Ok(StepEnd::Another))), Some((1, 0)));
        assert!(matches!(machine.step_ended(Ok(StepEnd::Final)), TurnAction::Finish(FinishReason::TextResponse)));
        assert_eq!(machine.steps(), 2);
    }

    #[test]
    fn the_limit_of_steps_ends_the_turn() {
        let mut machine = machine(2, 3);
        machine.start();
        assert_eq!(step(&machine.step_ended(Ok(StepEnd::Another))), Some((1, 0)));
        assert!(matches!(machine.step_ended(Ok(StepEnd::Another)), TurnAction::Finish(FinishReason::MaxSteps)));
    }

    #[test]
    fn a_retry_is_a_new_step_and_counts_against_both_limits() {
        let again = || Err(Error::retry_after(Duration::from_secs(1), "busy"));
        let mut machine = machine(4, 2);
        machine.start();
        assert_eq!(step(&machine.step_ended(again())), Some((1, 1)));
        assert_eq!(step(&machine.step_ended(again())), Some((2, 2)));
        assert!(matches!(machine.step_ended(again()), TurnAction::Fail(_)), "two retries in a row were used up");

        let mut machine = self::machine(2, 9);
        machine.start();
        assert_eq!(step(&machine.step_ended(again())), Some((1, 1)));
        assert!(matches!(machine.step_ended(again()), TurnAction::Fail(_)), "the steps were used up");
    }

    #[test]
    fn a_success_resets_the_retries() {
        let again = || Err(Error::retry_after(Duration::ZERO, "busy"));
        let mut machine = machine(9, 1);
        machine.start();
        assert_eq!(step(&machine.step_ended(again())), Some((1, 1)));
        assert_eq!(step(&machine.step_ended(Ok(StepEnd::Another))), Some((2, 0)));
        assert_eq!(step(&machine.step_ended(again())), Some((3, 1)));
    }

    #[test]
    fn the_model_is_asked_twice_in_a_row_to_correct_its_answer() {
        let mut machine = machine(9, 1);
        let repair = || Ok(StepEnd::Repair(Repair::malformed("it is empty")));
        machine.start();
        assert_eq!(step(&machine.step_ended(repair())), Some((1, 0)));
        assert_eq!(step(&machine.step_ended(Ok(StepEnd::Another))), Some((2, 0)));
        assert_eq!(step(&machine.step_ended(repair())), Some((3, 0)));
        assert_eq!(step(&machine.step_ended(repair())), Some((4, 0)));
        let TurnAction::Fail(error) = machine.step_ended(repair()) else { panic!("the turn goes on") };
        assert!(error.code() == "E_MODEL_UNUSABLE" && error.message().contains("it is empty"), "{error}");
    }

    #[test]
    fn an_answer_that_was_cut_off_ends_the_turn() {
        let mut machine = machine(9, 1);
        machine.start();
        assert!(matches!(machine.step_ended(Ok(StepEnd::Cut)), TurnAction::Finish(FinishReason::Length)));
    }

    #[test]
    fn other_errors_fail_the_turn() {
        let mut machine = machine(9, 1);
        machine.start();
        assert!(
            matches!(machine.step_ended(Err(Error::msg("no"))), TurnAction::Fail(error) if error.message() == "no")
        );
    }
}
