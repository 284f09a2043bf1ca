//! Messages of a request whose roles alternate.

use std::ops::Range;

pub(super) const USER: &str = "user";
pub(super) const ASSISTANT: &str = "assistant";

/// The text before an answer that begins the conversation: the first message must be the user's.
pub(super) const OMITTED: &str = "[The beginning of the conversation is left out.]";

/// The messages of a request. All their blocks are in one list.
pub(super) struct Alternating<B> {
    pub(super) blocks: Vec<B>,
    /// The role of each message, and where its blocks begin.
    starts: Vec<(&'static str, usize)>,
}

impl<B> Default for Alternating<B> {
    fn default() -> Self {
        Self { blocks: Vec::new(), starts: Vec::new() }
    }
}

impl<B> Alternating<B> {
    /// Notes that blocks were added from `start` on. Without any, there is no message; those of the same role as before
    /// belong to that message. `omitted` makes the block of the text that stands before an answer.
    pub(super) fn added(&mut self, role: &'static str, start: usize, omitted: impl FnOnce() -> B) {
        if self.blocks.len() == start {
            return;
        }
        match self.starts.last() {
            Some((last, _)) if *last == role => {}
            None if role == ASSISTANT => {
                self.blocks.insert(0, omitted());
                self.starts = vec![(USER, 0), (ASSISTANT, 1)];
            }
            _ => self.starts.push((role, start)),
        }
    }

    /// Returns the role and the range of blocks of each message.
    fn ranges(&self) -> impl DoubleEndedIterator<Item = (&'static str, Range<usize>)> {
        let ends = |index: usize| self.starts.get(index + 1).map_or(self.blocks.len(), |(_, start)| *start);
        self.starts.iter().enumerate().map(move |(index, (role, start))| (*role, *start..ends(index)))
    }

    /// Returns the role and the blocks of each message.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&'static str, &[B])> {
        self.ranges().map(|(role, range)| (role, &self.blocks[range]))
    }

    /// Moves the results of tools to the beginning of their messages, where Anthropic's models look for them.
    pub(super) fn put_results_first(&mut self, is_result: impl Fn(&B) -> bool) {
        let of_user: Vec<_> = self.ranges().filter(|(role, range)| *role == USER && range.len() > 1).collect();
        for (_, range) in of_user {
            self.blocks[range].sort_by_key(|block| !is_result(block));
        }
    }

    /// Returns the last blocks of the request before and of this one. The first of the two is there again, so that it
    /// is also found if a step has added more blocks than the provider looks back.
    // CACHE-01
    pub(super) fn ends(&self) -> impl Iterator<Item = usize> + use<B> {
        let newest = self.starts.iter().rfind(|(role, _)| *role == ASSISTANT);
        let before = newest.and_then(|(_, start)| start.checked_sub(1));
        [before, self.blocks.len().checked_sub(1)].into_iter().flatten()
    }

    /// Whether the running turn has no calls yet, or began with a block that `is_thinking`.
    pub(super) fn turn_began(&self, is_result: impl Fn(&B) -> bool, is_thinking: impl Fn(&B) -> bool) -> bool {
        let of_turn = |(role, content): &(&str, &[B])| *role == ASSISTANT || content.iter().all(&is_result);
        let turn = self.iter().rev().take_while(of_turn).filter(|(role, _)| *role == ASSISTANT);
        turn.last().and_then(|(_, content)| content.first()).is_none_or(is_thinking)
    }
}
