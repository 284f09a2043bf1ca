//! Transformers, which change the pieces of an answer while they are streamed.
// REVIEW-01, D-37

use std::borrow::Cow;
use std::fmt;

use crate::error::Result;

/// The kind of a text in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PieceKind {
    /// The words of the model.
    Text,
    /// Its thoughts before them.
    Reasoning,
}

/// Transforms the text of an answer piece by piece, before it is told and stored. A step layer sets it with
/// [`StepContext::transform_pieces`](crate::StepContext::transform_pieces).
///
/// A closure is a transformer of single pieces: it takes a `&str`, and returns the text that it becomes, or `None` if
/// it does not change. One that must see more than a piece, such as a
/// word that is cut, keeps the end of a piece back until the next one:
///
/// ```
/// use std::borrow::Cow;
///
/// use goondan::middleware::{PieceKind, PieceTransformer};
/// use goondan::prelude::*;
///
/// /// Writes a name in capitals, wherever the pieces are cut.
/// #[derive(Default)]
/// struct Shouted {
///     kept: String,
/// }
///
/// const NAME: &str = "goondan";
///
/// impl PieceTransformer for Shouted {
///     fn piece<'p>(&mut self, _: PieceKind, piece: &'p str) -> Result<Cow<'p, str>> {
///         self.kept.push_str(piece);
///         let text = self.kept.replace(NAME, "GOONDAN");
///         // The longest end of the text that the name may begin with.
///         let held = (1..NAME.len()).rev().find(|len| text.ends_with(&NAME[..*len])).unwrap_or(0);
///         let (told, kept) = text.split_at(text.len() - held);
///         self.kept = kept.to_owned();
///         Ok(told.to_owned().into())
///     }
///
///     fn end(&mut self, _: PieceKind) -> Result<String> {
///         Ok(std::mem::take(&mut self.kept))
///     }
/// }
///
/// let mut shouted = Shouted::default();
/// let pieces = ["this is goo", "ndan", " and goo"].map(|piece| shouted.piece(PieceKind::Text, piece).unwrap());
/// assert_eq!(pieces, ["this is ", "GOONDAN", " and "]);
/// assert_eq!(shouted.end(PieceKind::Text).unwrap(), "goo");
/// ```
pub trait PieceTransformer: Send + 'static {
    /// Returns the text that is told and stored of a piece, and of the pieces kept back before. A piece that does not
    /// change is returned borrowed, which costs nothing.
    ///
    /// # Errors
    /// The step fails, also with `onError: skip`: the text that was kept back is not known any more.
    fn piece<'p>(&mut self, kind: PieceKind, piece: &'p str) -> Result<Cow<'p, str>>;

    /// Returns the text that was kept back of a part of the answer that has ended. The next piece belongs to another
    /// part. If the model begins its answer again, this text is dropped.
    ///
    /// # Errors
    /// As those of [`PieceTransformer::piece`].
    fn end(&mut self, _kind: PieceKind) -> Result<String> {
        Ok(String::new())
    }
}

impl<F> PieceTransformer for F
where
    F: FnMut(&str) -> Option<String> + Send + 'static,
{
    fn piece<'p>(&mut self, _: PieceKind, piece: &'p str) -> Result<Cow<'p, str>> {
        Ok(self(piece).map_or(Cow::Borrowed(piece), Cow::Owned))
    }
}

/// A transformer as a step keeps it.
pub struct Transformer(Box<dyn PieceTransformer>);

impl Transformer {
    /// Keeps a transformer.
    pub fn new(transformer: impl PieceTransformer) -> Self {
        Self(Box::new(transformer))
    }

    /// Transforms a piece. It may panic.
    ///
    /// # Errors
    /// The failure of the transformer.
    pub fn piece<'p>(&mut self, kind: PieceKind, piece: &'p str) -> Result<Cow<'p, str>> {
        self.0.piece(kind, piece)
    }

    /// Returns the text that was kept back. It may panic.
    ///
    /// # Errors
    /// The failure of the transformer.
    pub fn end(&mut self, kind: PieceKind) -> Result<String> {
        self.0.end(kind)
    }
}

impl fmt::Debug for Transformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transformer")
    }
}
