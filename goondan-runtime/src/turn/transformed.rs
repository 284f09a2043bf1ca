//! The transformers of a step, which change the text of its answer piece by piece.
// REVIEW-01, D-37

use std::borrow::Cow;

use goondan_core::host::Transformer;
use goondan_core::host::panic::catch;
use goondan_core::{Error, LayerInfo, Part, PieceKind, ReasoningPart, Result, TextPart};
use goondan_lock::Lock;

use super::directed::at_part;
use crate::ports::model::ModelDelta;

/// The transformers of a step, outermost first. Behind a lock, because the step is shared while it runs.
#[derive(Default)]
pub(super) struct Transformers(Lock<Vec<(Transformer, LayerInfo)>>);

impl Transformers {
    pub(super) fn add(&mut self, transformer: Transformer, layer: &LayerInfo) {
        self.0.get_mut().push((transformer, layer.clone()));
    }

    /// Begins with an answer, if there are transformers.
    #[inline]
    pub(super) fn begin(&mut self) -> Option<Box<Lock<Transforming>>> {
        if self.0.get_mut().is_empty() { None } else { Some(self.start()) }
    }

    #[cold]
    fn start(&mut self) -> Box<Lock<Transforming>> {
        let mut chain = std::mem::take(self.0.get_mut());
        chain.reverse();
        Box::new(Lock::new(Transforming { chain, open: None, told: Vec::new(), failed: None }))
    }
}

/// The transformers while an answer is made.
pub(super) struct Transforming {
    /// Innermost first.
    chain: Vec<(Transformer, LayerInfo)>,
    /// The part of the last piece.
    open: Option<(u32, PieceKind)>,
    /// The texts that were sent, by part.
    told: Vec<Told>,
    failed: Option<Error>,
}

/// The text that was sent of a part.
struct Told {
    part: u32,
    kind: PieceKind,
    /// The number of its bytes that have come.
    came: usize,
    /// The number of them that were sent unchanged before `rest`.
    same: usize,
    /// The text that was sent from the first change on.
    rest: Option<String>,
}

impl Told {
    fn add(&mut self, came: &str, told: &str) {
        self.came += came.len();
        match &mut self.rest {
            Some(rest) => rest.push_str(told),
            None if came == told => self.same += came.len(),
            None => self.rest = Some(told.to_owned()),
        }
    }

    /// Returns the text that was told of the part, which is `whole` before it is transformed, if it differs. `None`
    /// if other text came of it.
    fn of(&self, whole: &str) -> Option<Option<String>> {
        let same = whole.get(..self.same).filter(|_| self.came == whole.len())?;
        Some(self.rest.as_ref().map(|rest| format!("{same}{rest}")))
    }
}

impl Transforming {
    /// Takes a piece of the answer, and passes on its transformed text. Nothing once one has failed.
    pub(super) fn take(&mut self, piece: ModelDelta<'_>, pass: &dyn Fn(ModelDelta<'_>)) {
        if self.failed.is_some() {
            return;
        }
        let taken = match piece {
            ModelDelta::Text { part, text } => self.piece(part, PieceKind::Text, text, pass),
            ModelDelta::Reasoning { part, text } => self.piece(part, PieceKind::Reasoning, text, pass),
            ModelDelta::Restart { .. } => self.end(&|_| ()).map(|()| {
                self.told.clear();
                pass(piece);
            }),
            _ => self.end(pass).map(|()| pass(piece)),
        };
        self.failed = taken.err();
    }

    /// Returns the failure of a transformer.
    pub(super) fn failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    fn piece(&mut self, part: u32, kind: PieceKind, text: &str, pass: &dyn Fn(ModelDelta<'_>)) -> Result<()> {
        if self.open.is_some_and(|open| open != (part, kind)) {
            self.end(pass)?;
        }
        self.open = Some((part, kind));
        let told = through(&mut self.chain, kind, text)?;
        self.tell((part, kind), text, &told, pass);
        Ok(())
    }

    /// Ends the part of the last piece.
    fn end(&mut self, pass: &dyn Fn(ModelDelta<'_>)) -> Result<()> {
        if let Some(open) = self.open.take() {
            let rest = ends(&mut self.chain, open.1)?;
            self.tell(open, "", &rest, pass);
        }
        Ok(())
    }

    fn tell(&mut self, (part, kind): (u32, PieceKind), came: &str, told: &str, pass: &dyn Fn(ModelDelta<'_>)) {
        let place = self.told.iter().rposition(|of| (of.part, of.kind) == (part, kind)).unwrap_or_else(|| {
            self.told.push(Told { part, kind, came: 0, same: 0, rest: None });
            self.told.len() - 1
        });
        self.told[place].add(came, told);
        match kind {
            _ if told.is_empty() => {}
            PieceKind::Reasoning => pass(ModelDelta::Reasoning { part, text: told }),
            _ => pass(ModelDelta::Text { part, text: told }),
        }
    }

    /// Ends the answer, and makes its content the told text. The rest is transformed now. Returns whether
    /// other text came than the answer has.
    ///
    /// # Errors
    /// The failure of a transformer.
    pub(super) fn finish(mut self, content: &mut [Part], pass: &dyn Fn(ModelDelta<'_>)) -> Result<bool> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.end(pass)?;
        let mut has_other = false;
        for (index, part) in (0..).zip(content) {
            let (kind, whole) = match part {
                Part::Text(text) => (PieceKind::Text, text.text.as_str()),
                Part::Reasoning(reasoning) => (PieceKind::Reasoning, reasoning.text()),
                _ => continue,
            };
            let told = self.told.iter().find(|told| (told.part, told.kind) == (index, kind));
            let changed = match told.map(|told| told.of(whole)) {
                Some(Some(changed)) => changed,
                None if whole.is_empty() => None,
                other => {
                    has_other |= other.is_some();
                    let mut all = through(&mut self.chain, kind, whole)?.into_owned();
                    all.push_str(&ends(&mut self.chain, kind)?);
                    (all != whole).then_some(all)
                }
            };
            if let Some(changed) = changed {
                // Without the data of its provider, such as a signature of the text.
                *part = match kind {
                    PieceKind::Reasoning => ReasoningPart::new(changed, None).into(),
                    _ => TextPart::new(changed).into(),
                };
            }
        }
        Ok(has_other)
    }
}

/// Passes a piece through the transformers.
fn through<'p>(chain: &mut [(Transformer, LayerInfo)], kind: PieceKind, piece: &'p str) -> Result<Cow<'p, str>> {
    let mut piece = Cow::Borrowed(piece);
    for (transformer, layer) in chain {
        piece = match piece {
            Cow::Borrowed(text) => run(layer, || transformer.piece(kind, text))?,
            Cow::Owned(text) => run(layer, || transformer.piece(kind, &text).map(Cow::into_owned))?.into(),
        };
    }
    Ok(piece)
}

/// Returns the text that the transformers have kept back of a part that has ended.
fn ends(chain: &mut [(Transformer, LayerInfo)], kind: PieceKind) -> Result<String> {
    let mut rest = String::new();
    for (transformer, layer) in chain {
        let mut told = match rest.is_empty() {
            true => String::new(),
            false => run(layer, || transformer.piece(kind, &rest).map(Cow::into_owned))?,
        };
        told.push_str(&run(layer, || transformer.end(kind))?);
        rest = told;
    }
    Ok(rest)
}

fn run<T>(layer: &LayerInfo, transform: impl FnOnce() -> Result<T>) -> Result<T> {
    catch(transform)
        .unwrap_or_else(|text| Err(Error::panicked(&text)))
        .map_err(|error| at_part(error, "transformer", layer))
}
