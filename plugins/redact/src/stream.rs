//! Redaction of an answer while it is streamed.

use std::borrow::Cow;
use std::sync::Arc;

use goondan::middleware::{PieceKind, PieceTransformer};
use goondan::prelude::*;
use regex_automata::hybrid::dfa::Cache;

use crate::rules::Found;
use crate::told::Told;

/// Redacts pieces. A text that may become a match is kept back until it is known.
pub(crate) struct Stream {
    told: Arc<Told>,
    caches: Vec<Cache>,
    /// The character that was told last, which a rule may look at, and then the text that is kept back.
    text: String,
    /// Where the text that is kept back begins.
    from: usize,
}

impl Stream {
    pub(crate) fn new(told: Arc<Told>) -> Self {
        let caches = told.rules.caches();
        Self { told, caches, text: String::new(), from: 0 }
    }

    /// Returns the text up to `end` with its matches replaced, and keeps the rest.
    fn tell(&mut self, end: usize, found: &[Found]) -> Result<String> {
        let told = &found[..found.partition_point(|found| found.end <= end)];
        let out = self.told.rules.replaced(&self.text, self.from..end, told)?;
        self.told.found("answers", told);
        self.keep_from(end);
        Ok(out)
    }

    /// Keeps the text from `end` on, and the character before it.
    fn keep_from(&mut self, end: usize) {
        let last = self.text[..end].chars().next_back().map_or(0, char::len_utf8);
        self.text.drain(..end - last);
        self.from = last;
    }
}

impl PieceTransformer for Stream {
    fn piece<'p>(&mut self, _: PieceKind, piece: &'p str) -> Result<Cow<'p, str>> {
        let kept = self.text.len() - self.from;
        self.text.push_str(piece);
        let mut held_from = self.told.rules.held_from(&mut self.caches, &self.text, self.from);
        let found = self.told.rules.find(&self.text, self.from);
        // A match that overlaps the held text is held as a whole.
        if let Some(over) = found.iter().find(|found| found.start < held_from && held_from < found.end) {
            held_from = over.start;
        }
        if kept == 0 && held_from == self.text.len() && found.is_empty() {
            self.keep_from(held_from);
            return Ok(Cow::Borrowed(piece));
        }
        self.tell(held_from, &found).map(Cow::Owned)
    }

    fn end(&mut self, _: PieceKind) -> Result<String> {
        let found = self.told.rules.find(&self.text, self.from);
        let rest = self.tell(self.text.len(), &found);
        self.text.clear();
        self.from = 0;
        rest
    }
}
