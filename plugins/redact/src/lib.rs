//! Masks addresses, numbers and keys in inputs, answers and the outputs of tools.
//!
//! `rules` finds them, with `checks` beyond regular expressions, and `stream` does while an answer is
//! streamed. `told` counts the matches.
// REVIEW-01

mod checks;
mod config;
mod rules;
mod stream;
mod told;

pub use config::Config;

use std::borrow::Cow;
use std::sync::Arc;

use goondan::conversation::Content;
use goondan::middleware::{AnswerVerdict, InputMasker, ModelAnswer};
use goondan::prelude::*;

use config::Place;
use rules::Rules;
use stream::Stream;
use told::Told;

/// The extension.
#[derive(Debug)]
pub struct Redact {
    told: Arc<Told>,
    places: Vec<Place>,
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.rules.rules.iter().map(|rule| &rule.name).collect();
        f.debug_tuple("Told").field(&names).finish()
    }
}

/// A masker of inputs.
struct Inputs(Arc<Told>);

impl InputMasker for Inputs {
    fn mask(&self, text: &str) -> Result<Option<String>> {
        self.0.redacted("inputs", text)
    }
}

/// Masks addresses, numbers and keys.
#[goondan::extension(name = "redact", guard)]
impl Redact {
    #[init]
    fn new(config: Config, api: ExtensionApi) -> Result<Self> {
        let rules = Rules::new(&config)?;
        let told = Arc::new(Told { rules, api: api.clone() });
        if config.r#in.contains(&Place::Inputs) {
            api.pipeline().mask_inputs(Inputs(Arc::clone(&told)))?;
        }
        Ok(Self { told, places: config.r#in })
    }

    /// Innermost, so that no other layer sees masked texts.
    #[middleware(step, priority = 1300)]
    async fn answers(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if self.places.contains(&Place::Answers) {
            ctx.transform_pieces(Stream::new(Arc::clone(&self.told)));
            // The rest: arguments of calls, names of files.
            let told = Arc::clone(&self.told);
            ctx.review_after_streaming(move |answer: &ModelAnswer| {
                Ok(redact(&told, "answers", answer.content())?.map_or(AnswerVerdict::Keep, AnswerVerdict::Replace))
            });
        }
        next.run(ctx).await
    }

    /// Innermost too.
    #[middleware(toolCall, priority = 1300)]
    async fn outputs(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut result = next.run(ctx).await?;
        if self.places.contains(&Place::Tools) {
            let mut refused = None;
            // Errors too.
            result.map_text(|text| mapped(&self.told, "tools", text, &mut refused));
            refused.map_or(Ok(()), Err)?;
        }
        Ok(result)
    }
}

/// Returns the content with its matches replaced, if there are some.
fn redact(told: &Told, place: &str, content: &Content) -> Result<Option<Content>> {
    if !content.texts().any(|text| !told.rules.find(&text, 0).is_empty()) {
        return Ok(None);
    }
    let mut refused = None;
    let redacted = content.clone().map_text(|text| mapped(told, place, text, &mut refused));
    refused.map_or(Ok(Some(redacted)), Err)
}

fn mapped<'t>(told: &Told, place: &str, text: &'t str, refused: &mut Option<Error>) -> Cow<'t, str> {
    match told.redacted(place, text) {
        Ok(redacted) => redacted.map_or(Cow::Borrowed(text), Cow::Owned),
        Err(error) => {
            refused.get_or_insert(error);
            Cow::Borrowed(text)
        }
    }
}
