//! A tool that waits.

use std::time::Duration;

use goondan::prelude::*;

/// The longest wait, in seconds.
// F-BASE
const LONGEST: u32 = 300;

/// The input of `wait__seconds`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// How long to wait, in seconds, at most 300. Fractions are allowed.
    #[schemars(range(min = 0, max = LONGEST))]
    seconds: f64,
}

/// The time that the tool has waited.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Waited {
    waited_seconds: f64,
    waited_ms: u64,
}

/// Waits, when the model has to give something else time.
#[goondan::extension(name = "wait")]
pub mod tools {
    use super::*;

    /// Waits for some seconds, and then returns. Use it to give something time that goes on elsewhere, such as a build
    /// or another agent, before you look again.
    // Not `read`, although it changes nothing: such calls run at once with those beside them, and a model that asks for
    // a wait and a look means one after the other.
    #[tool(effect = idempotent, timeout = "5m 10s", present = "{seconds} s")]
    async fn seconds(input: Input) -> Result<Waited> {
        let wait = Duration::try_from_secs_f64(input.seconds)?;
        tokio::time::sleep(wait).await;
        Ok(Waited { waited_seconds: input.seconds, waited_ms: wait.as_millis().try_into()? })
    }
}
