//! Maskers, which change an input before anything of it is stored.
// REVIEW-01

use crate::conversation::Content;
use crate::error::Result;
use crate::event::AgentEvent;

/// Masks the texts of inputs before anything of them is stored. An extension registers one with
/// [`PipelineApi::mask_inputs`](crate::PipelineApi::mask_inputs).
///
/// A closure is a masker: it takes a `&str`, and returns the text that it becomes, or `None` if it does not change. It
/// must be pure: the same text becomes the same, and its output stays as it is. An event that is sent again is the
/// same event only then.
pub trait InputMasker: Send + Sync + 'static {
    /// Returns the masked form of a text, or `None` if it does not change.
    ///
    /// # Errors
    /// The input is refused with this: nothing of it is stored, and no turn begins.
    fn mask(&self, text: &str) -> Result<Option<String>>;
}

impl<F> InputMasker for F
where
    F: Fn(&str) -> Option<String> + Send + Sync + 'static,
{
    fn mask(&self, text: &str) -> Result<Option<String>> {
        Ok(self(text))
    }
}

/// Masks each text of an event that the model would read: its input, and those of its parts, such as names of files.
///
/// # Errors
/// The first error of `mask`.
pub fn mask_event(event: &mut AgentEvent, mask: &mut dyn FnMut(&str) -> Result<Option<String>>) -> Result<()> {
    if let Some(input) = &mut event.input
        && let Some(masked) = mask(input)?
    {
        *input = masked;
    }
    if event.content.is_empty() {
        return Ok(());
    }
    let mut failed = None;
    let masked = Content::from(std::mem::take(&mut event.content)).map_text(|text| match mask(text) {
        Ok(masked) => masked.map_or(text.into(), Into::into),
        Err(error) => {
            failed.get_or_insert(error);
            text.into()
        }
    });
    event.content = masked.into_parts();
    failed.map_or(Ok(()), Err)
}
