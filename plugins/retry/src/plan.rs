//! Decides what follows a failure. It waits for nothing itself.

use std::time::Duration;

use goondan::{Error, Value};
use goondan_backoff::Backoff;

use crate::{Config, Spent};

/// The reaction to a failure of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The step is run again after this delay.
    Wait(Duration),
    /// The step is run again at once, with the other model.
    Change,
    /// The failure is passed on.
    GiveUp,
}

impl Plan {
    /// Returns what follows this failure of a step that was run again `attempt` times.
    pub(crate) fn after(config: &Config, attempt: u64, spent: Spent, error: &Error) -> Self {
        // An error with a delay is another layer's intent to run the step again.
        let worth_it = error.is_retryable() && error.retry_delay().is_none();
        if !worth_it || attempt >= u64::from(config.max_retries) {
            return Self::GiveUp;
        }
        let delay = delay(config, attempt, spent, error);
        match (&config.fallback, delay) {
            (Some(other), _) if !spent.fallback && attempt + 1 >= u64::from(other.after.get()) => Self::Change,
            (_, Some(delay)) => Self::Wait(delay),
            (Some(_), None) if !spent.fallback => Self::Change,
            (_, None) => Self::GiveUp,
        }
    }
}

/// Returns how long to wait before the same model is asked again. `None` if it should not be asked again: it has been
/// already, or it wants a longer delay, or the delays of the turn are used up.
fn delay(config: &Config, attempt: u64, spent: Spent, error: &Error) -> Option<Duration> {
    let detail = |name: &str| error.details().get(name).and_then(Value::as_u64);
    // core.md §5: the model's adapter has sent the request several times, and numbers never multiply.
    if detail("attempts").is_some_and(|attempts| attempts > 1) {
        return None;
    }
    let [first, longest, budget, waited] =
        [config.first_delay_ms, config.max_delay_ms, config.budget_ms, spent.waited_ms].map(Duration::from_millis);
    let failures = u32::try_from(attempt).unwrap_or(u32::MAX).saturating_add(1);
    let wanted = Duration::from_millis(detail("retryAfterMs").unwrap_or(0));
    let delay = Backoff { first, longest }.random(failures).max(wanted);
    (delay <= longest && waited.saturating_add(delay) <= budget).then_some(delay)
}

#[cfg(test)]
mod tests {
    use goondan::ErrorCode;

    use super::*;
    use crate::Fallback;

    fn failure() -> Error {
        Error::new(ErrorCode::MODEL_OVERLOADED, "too much to do").retryable(true)
    }

    fn with_other(after: u32) -> Config {
        let after = after.try_into().unwrap_or(crate::once());
        Config { fallback: Some(Fallback { model: "backup".to_owned(), after }), ..Config::default() }
    }

    fn delays(config: &Config, error: &Error) -> Vec<u128> {
        let delay = |attempt| match Plan::after(config, attempt, Spent::default(), error) {
            Plan::Wait(delay) => Some(delay.as_millis()),
            _ => None,
        };
        (0..).map_while(delay).collect()
    }

    #[test]
    fn delays_double_up_to_the_limit() {
        let config = Config { max_retries: 8, ..Config::default() };
        for _ in 0..100 {
            let delays = delays(&config, &failure());
            assert_eq!(delays.len(), 8);
            for (delay, longest) in delays.into_iter().zip([1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000]) {
                assert!((longest / 2..=longest).contains(&delay), "{delay} of {longest}");
            }
        }
    }

    #[test]
    fn three_retries_are_the_default() {
        assert_eq!(delays(&Config::default(), &failure()).len(), 3);
    }

    #[test]
    fn only_what_may_help_and_was_not_done_already_is_done() {
        let plan = |error: &Error| Plan::after(&Config::default(), 0, Spent::default(), error);
        assert_eq!(plan(&failure().retryable(false)), Plan::GiveUp);
        assert_eq!(plan(&Error::retry_after(Duration::ZERO, "shorter now")), Plan::GiveUp);
        assert_eq!(plan(&failure().with_detail("attempts", 2)), Plan::GiveUp);
        assert!(matches!(plan(&failure().with_detail("attempts", 1)), Plan::Wait(_)));
    }

    #[test]
    fn the_delay_is_at_least_what_the_model_asks_for() {
        let plan =
            |ms: u64| Plan::after(&Config::default(), 0, Spent::default(), &failure().with_detail("retryAfterMs", ms));
        assert_eq!(plan(7000), Plan::Wait(Duration::from_secs(7)));
        assert_eq!(plan(10_001), Plan::GiveUp);
    }

    #[test]
    fn the_delays_of_a_turn_have_a_budget() {
        let plan = |waited_ms| Plan::after(&Config::default(), 0, Spent { waited_ms, ..Spent::default() }, &failure());
        assert!(matches!(plan(59_000), Plan::Wait(_)));
        assert_eq!(plan(59_501), Plan::GiveUp);
    }

    #[test]
    fn the_other_model_is_asked_after_some_failures_or_where_waiting_does_not_help() {
        let plan = |after, attempt, spent, error: &Error| Plan::after(&with_other(after), attempt, spent, error);
        let (own, other) = (Spent::default(), Spent { fallback: true, ..Spent::default() });
        assert_eq!(plan(1, 0, own, &failure()), Plan::Change);
        assert!(matches!(plan(2, 0, own, &failure()), Plan::Wait(_)));
        assert_eq!(plan(2, 1, own, &failure()), Plan::Change);
        assert!(matches!(plan(2, 2, other, &failure()), Plan::Wait(_)));
        let retried = failure().with_detail("attempts", 4);
        assert_eq!(plan(2, 0, own, &retried), Plan::Change);
        assert_eq!(plan(2, 1, other, &retried), Plan::GiveUp);
        assert_eq!(plan(2, 0, own, &failure().with_detail("retryAfterMs", 60_000)), Plan::Change);
    }
}
