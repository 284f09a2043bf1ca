//! Plan of a turn, which the child follows and from which the parent computes the expected content.

/// How many messages a turn that trims keeps, its input included.
pub(crate) const WINDOW: usize = 24;

/// What a turn does. It depends only on the number of the turn.
pub(crate) struct Plan {
    /// Whether it removes the oldest messages.
    pub(crate) trims: bool,
    /// The index of the message that it rewrites, if any, modulo the number of messages; 0 is the oldest.
    pub(crate) rewrites: Option<usize>,
    /// The tools that it calls, in order.
    pub(crate) calls: Vec<Tool>,
    /// Whether it empties the conversation at its end.
    pub(crate) truncates: bool,
    /// Whether it appends a note at its end.
    pub(crate) notes: bool,
}

/// One tool of each effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Look,
    Set,
    Pay,
}

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Look => "churn__look",
            Self::Set => "churn__set",
            Self::Pay => "churn__pay",
        }
    }
}

impl Plan {
    pub(crate) fn of(turn: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(turn);
        let tools = [Tool::Look, Tool::Set, Tool::Pay, Tool::Pay];
        let only_looks = random.u8(..4) == 0;
        let calls = (0..random.usize(..4)).map(|_| if only_looks { Tool::Look } else { tools[random.usize(..4)] });
        Self {
            calls: calls.collect(),
            trims: random.u8(..3) == 0,
            rewrites: (random.u8(..3) == 0).then(|| random.usize(..WINDOW)),
            truncates: random.u8(..24) == 0,
            notes: random.bool(),
        }
    }
}
