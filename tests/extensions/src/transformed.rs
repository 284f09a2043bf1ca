//! Extensions that transform the pieces of an answer.

use std::borrow::Cow;

use goondan::middleware::{AnswerVerdict, ModelAnswer, PieceKind, PieceTransformer};
use goondan::prelude::*;

use crate::Log;

/// Transforms pieces as its config says.
pub struct Transforming {
    config: Config,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    log: Log,
    /// The word that is replaced, wherever pieces are cut.
    #[serde(default)]
    word: String,
    /// What stands in its place.
    #[serde(default)]
    by: String,
    /// What it does when it gets this text.
    fail: Option<String>,
    panic: Option<String>,
    /// Whether it fails when a part ends.
    #[serde(default)]
    fail_at_end: bool,
    /// Whether it is a closure, for which a word is not cut.
    #[serde(default)]
    is_closure: bool,
    /// Whether it logs the answer that reviewers get.
    #[serde(default)]
    reviews: bool,
    /// Whether it is set after `next`.
    #[serde(default)]
    late: bool,
    /// The answer that it prepares.
    prepare: Option<String>,
}

struct Replacing {
    config: Config,
    kept: String,
}

impl PieceTransformer for Replacing {
    fn piece<'p>(&mut self, kind: PieceKind, piece: &'p str) -> Result<Cow<'p, str>> {
        let Config { log, word, by, fail, panic, .. } = &self.config;
        if fail.as_ref().is_some_and(|text| piece.contains(text)) {
            return Err(Error::new("E_BROKEN", "it broke"));
        }
        assert!(!panic.as_ref().is_some_and(|text| piece.contains(text)), "it panicked");
        if word.is_empty() {
            log.write(format!("{kind:?} {piece:?}"));
            return Ok(Cow::Borrowed(piece));
        }
        self.kept.push_str(piece);
        let text = self.kept.replace(word, by);
        let starts = word.char_indices().map(|(at, _)| at).rev();
        let held = starts.filter(|len| *len > 0).find(|len| text.ends_with(&word[..*len])).unwrap_or(0);
        let (told, kept) = text.split_at(text.len() - held);
        let told = told.to_owned();
        self.kept = kept.to_owned();
        Ok(told.into())
    }

    fn end(&mut self, kind: PieceKind) -> Result<String> {
        if self.config.fail_at_end {
            return Err(Error::new("E_BROKEN", "it broke"));
        }
        if self.config.word.is_empty() {
            self.config.log.write(format!("{kind:?} ends"));
        }
        Ok(std::mem::take(&mut self.kept))
    }
}

#[goondan::extension(name = "transforming")]
impl Transforming {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    fn set(&self, ctx: &mut StepContext<'_>) {
        let config = self.config.clone();
        if config.is_closure {
            let Config { word, by, .. } = config;
            ctx.transform_pieces(move |piece: &str| piece.contains(&word).then(|| piece.replace(&word, &by)));
        } else {
            ctx.transform_pieces(Replacing { config, kept: String::new() });
        }
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let Config { log, reviews, late, prepare, .. } = self.config.clone();
        if let Some(answer) = prepare {
            ctx.answer_with(answer);
        }
        if reviews {
            ctx.review_after_streaming(move |answer: &ModelAnswer| {
                log.write(answer.text());
                AnswerVerdict::Keep
            });
        }
        if !late {
            self.set(ctx);
        }
        let result = next.run(ctx).await?;
        if late {
            self.set(ctx);
        }
        Ok(result)
    }
}
