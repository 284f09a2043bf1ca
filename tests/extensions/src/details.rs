//! An extension that reads the details of errors.

use goondan::prelude::*;
use goondan::{Error, ErrorCode};

/// Answers an error of the model with one of its own, which has the details that it has seen.
pub struct Detailing;

#[goondan::extension(name = "detailing")]
impl Detailing {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn detail(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        match next.catch(ctx).await {
            Err(failure) => {
                let seen = serde_json::to_string(failure.error().details())?;
                let error = Error::new(ErrorCode::MODEL_RATE_LIMIT, "given up").with_detail("seen", seen);
                Err(error.with_detail("retryAfterMs", 9).with_detail("final", true))
            }
            Ok(result) => Ok(result),
        }
    }
}
