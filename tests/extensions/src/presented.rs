//! Tools that say for people what their calls do, well and badly.

use std::time::Duration;

use goondan::Value;
use goondan::prelude::*;
use goondan::tool::{Presentation, ShownCall, ToolOutcome};

/// Offers one tool for each way to say it.
pub struct Presented;

#[derive(Debug, Deserialize, JsonSchema)]
struct Move {
    from: String,
    #[expect(dead_code, reason = "only shown")]
    to: Option<String>,
    /// Whether the call fails.
    #[serde(default)]
    fails: bool,
}

fn counted(call: &ShownCall<'_>) -> Presentation {
    let presentation = Presentation::new(call.arg("from"));
    match call.output("files").and_then(Value::as_u64) {
        None => presentation,
        Some(0) => presentation.outcome(ToolOutcome::failed("nothing moved")),
        Some(files) => presentation.outcome(ToolOutcome::ok(format!("{files} files"))).output("a\nb"),
    }
}

#[goondan::extension(name = "presented")]
impl Presented {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Shows its arguments within a text.
    #[tool(present = "{from} → {to}")]
    async fn line(&self, input: Move) -> Result<String> {
        answer(&input)
    }

    /// Says what came of it by a function.
    #[tool(present = counted)]
    async fn function(&self, input: Move) -> Result<Value> {
        answer(&input)?;
        Ok(goondan::json!({ "files": input.from.len() }))
    }

    /// Returns a text by a function of the extension.
    #[tool(present = Self::text, blocking)]
    fn own(&self, input: Move) -> Result<String> {
        answer(&input)
    }

    fn text(call: &ShownCall<'_>) -> String {
        format!("\x1b[2J{}\n{}", call.arg("from"), "x".repeat(300))
    }

    /// Says nothing.
    #[tool]
    async fn nothing(&self, input: Move) -> Result<String> {
        answer(&input)
    }

    /// Panics when a person should read of it.
    #[tool(present = panics)]
    async fn panics(&self, input: Move) -> Result<String> {
        answer(&input)
    }

    /// Takes longer than a presenter may.
    #[tool(present = takes_long)]
    async fn slow(&self, input: Move) -> Result<String> {
        answer(&input)
    }
}

fn answer(input: &Move) -> Result<String> {
    if input.fails { Err(Error::new("E_MOVE", "there is no room\nat all")) } else { Ok("moved".to_owned()) }
}

#[expect(clippy::panic, reason = "the subject")]
fn panics(_: &ShownCall<'_>) -> Presentation {
    panic!("nothing to say")
}

fn takes_long(_: &ShownCall<'_>) -> Presentation {
    std::thread::sleep(Duration::from_millis(11));
    Presentation::new("at last")
}

/// Names an argument that it does not have.
pub struct Misnamed;

#[goondan::extension(name = "misnamed")]
impl Misnamed {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Moves something.
    #[tool(present = "{source}")]
    async fn line(&self, input: Move) -> Result<String> {
        answer(&input)
    }
}
