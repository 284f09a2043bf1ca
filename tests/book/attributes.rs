//! The snippets of `docs/attributes.md`.

use goondan::Value;
use goondan::prelude::*;
use goondan::tool::{Presentation, ShownCall, ToolContext, ToolOutcome};
use serde::Serialize;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Config {
    _times: u8,
}

#[expect(dead_code, reason = "only its schema is shown")]
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Linter {
    /// The program, with its arguments.
    #[schemars(extend("x-goondan" = "command"))]
    pub command: Vec<String>,
    /// Where it sends its reports.
    #[schemars(extend("x-goondan" = "host"))]
    pub report_to: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    text: String,
}

pub struct Shown {
    api: ExtensionApi,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Program {
    program: String,
}

#[derive(Debug, Serialize)]
pub struct Ended {
    code: i64,
}

/// The description, which `goondan plugin list` and `goondan plugin inspect` show.
#[goondan::extension(name = "shown", requires = ["workspace"])]
impl Shown {
    #[init]
    async fn new(api: ExtensionApi, _config: Config, ctx: InitContext) -> Result<Self> {
        api.logger().info(format!("{} in {}", ctx.extension(), ctx.instance()));
        Ok(Self { api })
    }

    #[middleware(step, priority = -5)]
    async fn watch(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>, api: &ExtensionApi) -> Result<StepResult> {
        api.logger().debug("before");
        let result = next.run(ctx).await?;
        api.logger().debug("after");
        Ok(result)
    }

    /// Counts the letters of a text. The model reads this description.
    #[tool(name = "text__count", effect = read, timeout = "1m 30s")]
    async fn count(&self, ctx: &ToolContext<'_>, input: Input, api: &ExtensionApi) -> Result<usize> {
        api.logger().with("call", ctx.call_id().as_str()).debug("counting");
        Ok(input.text.chars().count())
    }

    /// Runs a program.
    #[tool(present = Self::shown)]
    async fn run(&self, input: Program) -> Result<Ended> {
        Ok(Ended { code: i64::try_from(input.program.len())? })
    }

    fn shown(call: &ShownCall<'_>) -> Presentation {
        let presentation = Presentation::new(call.arg("program"));
        match call.output("code").and_then(Value::as_i64) {
            None => presentation,
            Some(0) => presentation.outcome(ToolOutcome::ok("")),
            Some(code) => presentation.outcome(ToolOutcome::failed(format!("exit {code}"))),
        }
    }

    /// Sorts the letters of a text. It blocks its thread: it awaits nothing.
    #[tool(blocking)]
    fn sort(&self, input: Input) -> Result<String> {
        let mut letters: Vec<_> = input.text.chars().collect();
        letters.sort_unstable();
        Ok(letters.into_iter().collect())
    }

    #[cfg(unix)]
    #[on("workspace.*")]
    async fn hear(&self, event: &Event, api: &ExtensionApi) -> Result<()> {
        api.logger().debug(event.name());
        Ok(())
    }

    #[cleanup]
    async fn close(&self) -> Result<()> {
        self.api.state().set(&"closed")
    }
}
