//! Transformers of pieces, which the host calls while the model answers.
// REVIEW-01

use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::Arc;

use goondan_core::host::Transformer;
use goondan_core::{ExtensionName, InputMasker, PieceKind, PieceTransformer, Result};

use super::runtime::{RuntimeRef, RuntimeScope};
use crate::bytes::answer;
use crate::future::PollScope;
use crate::panic::{catch_or_log, drop_guarded};
use crate::table::{self, Buffer, PIECE_REASONING, Text, TransformerTable};

/// The transformer, its extension, and a reference that keeps the runtime running for it.
struct Data(Transformer, ExtensionName, RuntimeRef);

const TABLE: &TransformerTable = &TransformerTable { size: size_of::<TransformerTable>(), piece, end, drop };

/// Passes the ownership of a transformer of `extension` to the host.
pub(super) fn export_transformer(extension: &ExtensionName, transformer: Transformer) -> table::Transformer {
    let data = Box::into_raw(Box::new(Data(transformer, extension.clone(), RuntimeRef::new())));
    table::Transformer { data: data.cast(), table: TABLE }
}

/// Passes the ownership of a masker of inputs of `extension` to the host.
pub(super) fn export_masker(extension: &ExtensionName, masker: Arc<dyn InputMasker>) -> table::Transformer {
    export_transformer(extension, Transformer::new(Masking(masker)))
}

/// A masker of inputs, as a transformer of texts that are no pieces.
struct Masking(Arc<dyn InputMasker>);

impl PieceTransformer for Masking {
    fn piece<'p>(&mut self, _: PieceKind, text: &'p str) -> Result<Cow<'p, str>> {
        Ok(self.0.mask(text)?.map_or(Cow::Borrowed(text), Cow::Owned))
    }
}

fn kind(number: u32) -> PieceKind {
    if number == PIECE_REASONING { PieceKind::Reasoning } else { PieceKind::Text }
}

unsafe extern "C" fn piece(data: *mut c_void, number: u32, piece: Text, output: *mut Buffer) -> i32 {
    let transform = || {
        // SAFETY: The contract makes the host pass the data of this transformer, which it has not dropped, and call it
        // once at a time.
        let Data(transformer, ..) = unsafe { &mut *data.cast::<Data>() };
        // SAFETY: The contract makes the text valid for this call.
        let piece = unsafe { piece.str() };
        Ok(match transformer.piece(kind(number), piece)? {
            told if told == piece => None,
            told => Some(Buffer::bytes(told.into_owned().into_bytes())),
        })
    };
    // SAFETY: The contract makes the host pass a writable `output`.
    unsafe { answer(output, transform) }
}

unsafe extern "C" fn end(data: *mut c_void, number: u32, output: *mut Buffer) -> i32 {
    let end = || {
        // SAFETY: As for `piece`.
        let Data(transformer, ..) = unsafe { &mut *data.cast::<Data>() };
        let rest = transformer.end(kind(number))?;
        Ok((!rest.is_empty()).then(|| Buffer::bytes(rest.into_bytes())))
    };
    // SAFETY: The contract makes the host pass a writable `output`.
    unsafe { answer(output, end) }
}

unsafe extern "C" fn drop(data: *mut c_void) {
    catch_or_log("dropping a transformer", || {
        // SAFETY: The contract makes the host pass, once, the data of this transformer, which is the box above.
        let Data(transformer, extension, _runtime) = *unsafe { Box::from_raw(data.cast::<Data>()) };
        drop_guarded(extension, || {
            let _guard = RuntimeScope.enter();
            std::mem::drop(transformer);
        });
    });
}
