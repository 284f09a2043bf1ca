//! The use of a turn: tokens, money, calls and time, for the status while it runs and the line after it.

use std::fmt;
use std::time::{Duration, Instant};

use goondan::event::{Cost, RuntimeEvent, TokenUsage};
use goondan::middleware::ModelInfo;

/// The use of one turn so far.
pub(crate) struct Usage {
    start: Instant,
    model: ModelInfo,
    /// The number of the running step, counted from 1.
    step: u32,
    calls: u32,
    /// All tokens, if the model reports them.
    tokens: Option<TokenUsage>,
    /// The tokens of the newest request and its answer, which the next request begins with.
    context: u64,
}

impl Usage {
    /// A turn that begins now. `model` has the facts about the agent's model.
    pub(crate) fn new(model: ModelInfo) -> Self {
        Self { start: Instant::now(), model, step: 0, calls: 0, tokens: None, context: 0 }
    }

    pub(crate) fn update(&mut self, event: &RuntimeEvent) {
        match event {
            RuntimeEvent::StepStarted { step, .. } => self.step = step.step_index + 1,
            RuntimeEvent::StepCompleted { token_usage, model, .. } => {
                if let Some(model) = model {
                    self.model.model.clone_from(model);
                }
                if let Some(tokens) = token_usage {
                    self.context = tokens.prompt_tokens.saturating_add(tokens.completion_tokens);
                }
                self.add(*token_usage);
            }
            RuntimeEvent::ModelAsked { token_usage, .. } => self.add(*token_usage),
            RuntimeEvent::TurnCompleted { whole_usage: Some(whole), .. }
            | RuntimeEvent::TurnFailed { whole_usage: Some(whole), .. } => self.tokens = Some(*whole),
            RuntimeEvent::ToolCompleted { .. } | RuntimeEvent::ToolFailed { .. } => self.calls += 1,
            _ => {}
        }
    }

    fn add(&mut self, tokens: Option<TokenUsage>) {
        if let Some(tokens) = tokens {
            *self.tokens.get_or_insert_default() += tokens;
        }
    }

    /// Returns the words about the turn while it runs, the most important first.
    pub(crate) fn status(&self) -> Vec<String> {
        let mut status = vec![];
        if !self.model.model.is_empty() {
            status.push(self.model.model.clone());
        }
        if self.step > 1 {
            status.push(format!("step {}", self.step));
        }
        if let Some(tokens) = &self.tokens {
            status.push(format!("{} in", Count(tokens.prompt_tokens)));
            status.push(format!("{} out", Count(tokens.completion_tokens)));
            let window = self.model.context_window.filter(|window| *window > 0);
            status.extend(window.map(|window| format!("{} % of the window", percent(self.context, window))));
            status.extend(tokens.cost.map(money));
        }
        status
    }

    /// Returns the line after the turn, unless the model reports no tokens.
    pub(crate) fn summary(&self) -> Option<String> {
        Some(format!("{} · {}", of(&self.tokens?, self.calls), seconds(self.start.elapsed())))
    }
}

/// Returns the tokens and calls that were used, in words: `12.4k in (92 % cached) · 310 out · $0.011 · 3 calls`.
pub(crate) fn of(tokens: &TokenUsage, calls: u32) -> String {
    let cached = match percent(tokens.cached_prompt_tokens, tokens.prompt_tokens) {
        0 => String::new(),
        percent => format!(" ({percent} % cached)"),
    };
    let mut used =
        vec![format!("{} in{cached}", Count(tokens.prompt_tokens)), format!("{} out", Count(tokens.completion_tokens))];
    used.extend(tokens.cost.map(money));
    if calls > 0 {
        used.push(format!("{calls} call{}", if calls == 1 { "" } else { "s" }));
    }
    used.join(" · ")
}

/// Returns a share in per cent, rounded down.
fn percent(part: u64, whole: u64) -> u128 {
    (u128::from(part) * 100).checked_div(whole.into()).unwrap_or(0)
}

/// Returns an amount as people read it: cents of dollars, and of less than a dollar a tenth of a cent.
pub(crate) fn money(cost: Cost) -> String {
    match cost.as_usd() {
        dollars if dollars >= 1.0 => format!("${dollars:.2}"),
        dollars if dollars >= 0.01 => format!("${dollars:.3}"),
        dollars => format!("${dollars:.4}"),
    }
}

/// Returns a time as people read it.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A number of tokens in at most three digits, as `310`, `12.4k` or `1.2M`.
pub(crate) struct Count(pub(crate) u64);

impl fmt::Display for Count {
    #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{}", self.0),
            1_000..99_950 => write!(f, "{:.1}k", number / 1e3),
            99_950..999_500 => write!(f, "{:.0}k", number / 1e3),
            _ => write!(f, "{:.1}M", number / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(seconds(Duration::from_millis(1234)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(75)), "75.0 s");
    }

    #[test]
    fn counts_are_short() {
        let shown = [0, 999, 1_000, 12_449, 99_949, 99_950, 999_499, 999_500, 1_234_567];
        let shown = shown.map(|count| Count(count).to_string());
        assert_eq!(shown, ["0", "999", "1.0k", "12.4k", "99.9k", "100k", "999k", "1.0M", "1.2M"]);
    }

    #[test]
    fn amounts_are_short() {
        let shown = [0.0, 0.000_04, 0.0023, 0.0112, 1.005, 12.3].map(|dollars| money(Cost::usd(dollars)));
        assert_eq!(shown, ["$0.0000", "$0.0000", "$0.0023", "$0.011", "$1.00", "$12.30"]);
    }

    #[test]
    fn what_was_used_is_one_line() {
        let mut tokens = TokenUsage::new(12_400, 310);
        assert_eq!(of(&tokens, 0), "12.4k in · 310 out");
        tokens.cached_prompt_tokens = 11_500;
        tokens.cost = Some(Cost::usd(0.0112));
        assert_eq!(of(&tokens, 1), "12.4k in (92 % cached) · 310 out · $0.011 · 1 call");
    }
}
