//! Owns a `goondan` command with an extension whose tools wait for whoever tests it, and one that wants to lie inside of it.

/// Tools that wait until a named pipe is opened for writing, and closed again.
#[goondan::extension(name = "gate")]
mod gate {
    use std::fs;

    use goondan::prelude::*;

    /// Where the gate is.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Gate {
        /// A named pipe.
        path: String,
    }

    /// Waits at the gate, and counts who went through.
    #[tool(blocking)]
    fn wait(api: &ExtensionApi, gate: Gate) -> Result<String> {
        let said = fs::read_to_string(gate.path)?;
        api.state().update(|passed: &mut u32| *passed += 1)?;
        Ok(said)
    }

    /// Waits at the gate and lets nobody else run.
    #[tool]
    async fn stall(gate: Gate) -> Result<String> {
        Ok(fs::read_to_string(gate.path)?)
    }

    /// Cannot do it.
    #[tool]
    async fn fail() -> Result<String> {
        Err(Error::msg("no such gate"))
    }
}

/// Lies inside of the gate.
#[goondan::extension(name = "guarded")]
mod guarded {
    use goondan::prelude::*;

    #[middleware(step, after = "gate")]
    async fn inside(ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await
    }
}

fn main() -> std::process::ExitCode {
    goondan_cli::main()
}
