//! Transformers of a library, which change the text of an answer piece by piece.
// REVIEW-01

use std::borrow::Cow;
use std::ffi::c_void;

use goondan_core::{InputMasker, PieceKind, PieceTransformer, Result};
use goondan_lock::Lock;

use crate::bytes::ask;
use crate::table::{PIECE_REASONING, PIECE_TEXT, Text, Transformer, TransformerTable};

/// A transformer that a library has set. Dropping it drops it in the library.
pub(super) struct LibraryTransformer {
    data: *mut c_void,
    table: *const TransformerTable,
}

// SAFETY: The contract allows calling and dropping a transformer on any thread.
unsafe impl Send for LibraryTransformer {}

impl LibraryTransformer {
    /// Takes the ownership.
    ///
    /// # Safety
    /// The transformer must come from a library, and have no other owner.
    pub(super) unsafe fn new(transformer: &Transformer) -> Self {
        Self { data: transformer.data, table: transformer.table }
    }

    fn table(&self) -> &TransformerTable {
        // SAFETY: By the contract, tables are valid as long as the process runs.
        unsafe { &*self.table }
    }
}

fn number(kind: PieceKind) -> u32 {
    if kind == PieceKind::Reasoning { PIECE_REASONING } else { PIECE_TEXT }
}

impl PieceTransformer for LibraryTransformer {
    fn piece<'p>(&mut self, kind: PieceKind, piece: &'p str) -> Result<Cow<'p, str>> {
        let (entry, text) = (self.table().piece, Text::new(piece.as_bytes()));
        // SAFETY: The data came with the table, and `&mut self` makes this the only call. The text is borrowed for the
        // function.
        let told = ask(|output| unsafe { entry(self.data, number(kind), text, output) })?;
        Ok(told.map_or(Cow::Borrowed(piece), |told| told.text().into()))
    }

    fn end(&mut self, kind: PieceKind) -> Result<String> {
        let entry = self.table().end;
        // SAFETY: As above.
        let rest = ask(|output| unsafe { entry(self.data, number(kind), output) })?;
        Ok(rest.map(|rest| rest.text()).unwrap_or_default())
    }
}

/// A masker of inputs that a library has registered.
pub(super) struct LibraryMasker(Lock<LibraryTransformer>);

impl LibraryMasker {
    /// Takes the ownership.
    ///
    /// # Safety
    /// As for [`LibraryTransformer::new`].
    pub(super) unsafe fn new(masker: &Transformer) -> Self {
        // SAFETY: The caller guarantees it.
        Self(Lock::new(unsafe { LibraryTransformer::new(masker) }))
    }
}

impl InputMasker for LibraryMasker {
    fn mask(&self, text: &str) -> Result<Option<String>> {
        // One at a time, as the contract of transformers has it.
        Ok(match self.0.lock().piece(PieceKind::Text, text)? {
            Cow::Borrowed(_) => None,
            Cow::Owned(masked) => Some(masked),
        })
    }
}

impl Drop for LibraryTransformer {
    fn drop(&mut self) {
        let entry = self.table().drop;
        // SAFETY: The data came with the table, and is not used any more.
        unsafe { entry(self.data) };
    }
}
