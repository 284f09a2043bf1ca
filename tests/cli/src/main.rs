//! The command `goondan` with the extensions of these tests: one whose tools wait for the test, one that must run
//! inside it, one whose tools answer with files, one that withholds answers, one that starts turns, and the one that
//! reveals its key.

use goondan::event::AgentDelegate;
use goondan::name::AgentName;
use goondan::prelude::*;
use goondan_cli_tests as _;

/// Tools that wait until a named pipe is opened for writing, and closed again.
#[goondan::extension(name = "gate")]
mod gate {
    use std::fs;

    use goondan::prelude::*;

    /// Which gate to wait at.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Gate {
        /// A named pipe.
        path: String,
    }

    /// Waits at the gate, and counts the calls that passed it.
    #[tool(blocking)]
    fn wait(api: &ExtensionApi, gate: Gate) -> Result<String> {
        let said = fs::read_to_string(gate.path)?;
        api.state().update(|passed: &mut u32| *passed += 1)?;
        Ok(said)
    }

    /// Waits at the gate and blocks the runtime's thread.
    #[tool]
    async fn stall(gate: Gate) -> Result<String> {
        Ok(fs::read_to_string(gate.path)?)
    }

    /// Always fails.
    #[tool]
    async fn fail() -> Result<String> {
        Err(Error::msg("no such gate"))
    }
}

/// A tool that says how far it is, and waits like those of `gate`.
#[goondan::extension(name = "porter")]
mod porter {
    use goondan::prelude::*;

    /// Which gate to go through.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Way {
        /// A named pipe.
        path: String,
    }

    /// Carries boxes through the gate.
    #[tool]
    async fn carry(ctx: &ToolContext<'_>, way: Way) -> Result<String> {
        ctx.progress(1.0, Some(3.0), "boxes\u{1b}[31m\nof wood");
        Ok(tokio::task::spawn_blocking(move || std::fs::read_to_string(way.path)).await??)
    }
}

/// A tool that shows things to the person, and something more when it has ended.
#[goondan::extension(name = "teller")]
mod teller {
    use goondan::event::{ItemState, Shown, ShownItem};
    use goondan::prelude::*;

    /// Which gate to wait at.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Gate {
        /// A named pipe.
        path: String,
    }

    fn list(done: usize) -> Shown {
        let state = |at| if at < done { ItemState::Done } else { ItemState::Active };
        Shown::list(
            "Work",
            ["read 漢字", "write"].iter().enumerate().map(|(at, item)| ShownItem::new(state(at), *item)),
        )
    }

    /// Tells one of each, waits, and tells the end of the list.
    #[tool]
    async fn tell(api: &ExtensionApi, gate: Gate) -> Result<String> {
        let events = api.events();
        events.show(Shown::note("two\nlines"));
        events.show(Shown::difference("--- a/x.md\n+++ b/x.md\n@@ -1 +1 @@\n-old\n+new\n"));
        events.show(list(0));
        events.show(Shown::status("counts ".repeat(30)));
        events.show(list(1));
        let said = tokio::task::spawn_blocking(move || std::fs::read_to_string(gate.path)).await??;
        events.show(list(2));
        Ok(said)
    }

    /// Tells something when the gate opens, after the turn.
    #[tool]
    async fn later(api: &ExtensionApi, gate: Gate) -> Result<()> {
        let api = api.clone();
        tokio::task::spawn_blocking(move || {
            if std::fs::read_to_string(gate.path).is_ok() {
                api.events().show(list(0));
                api.events().show(list(1));
                api.events().show(Shown::note("the end"));
            }
        });
        Ok(())
    }
}

/// Where the answer comes from.
#[derive(Debug, Deserialize, JsonSchema)]
struct Asking {
    /// A named pipe.
    path: String,
}

/// Asks before each tool call, and waits until the gate opens.
#[goondan::extension(name = "asking")]
impl Asking {
    #[init]
    fn new(config: Asking) -> Self {
        config
    }

    #[middleware(toolCall)]
    async fn ask(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let path = self.path.clone();
        tokio::task::spawn_blocking(move || std::fs::read(path)).await??;
        next.run(ctx).await
    }
}

/// Has a layer inside those of `gate`.
#[goondan::extension(name = "guarded")]
mod guarded {
    use goondan::prelude::*;

    #[middleware(step, after = "gate")]
    async fn inside(ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await
    }
}

/// Tools that answer with pictures.
#[goondan::extension(name = "pencil")]
mod pencil {
    use goondan::conversation::FilePart;
    use goondan::prelude::*;

    fn picture() -> FilePart {
        FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named("line.png")
    }

    /// Draws a line.
    #[tool]
    async fn draw() -> Result<ToolReply> {
        Ok(ToolReply::text("A line:").file(picture()))
    }

    /// Fails to draw a line.
    #[tool]
    async fn smudge() -> Result<ToolReply> {
        Ok(ToolReply::text("this is all that is left:").file(picture()).failed())
    }
}

/// Logs where it runs.
#[goondan::extension(name = "placed")]
mod placed {
    use goondan::prelude::*;

    #[init]
    fn open(api: ExtensionApi, ctx: InitContext) -> Result<()> {
        let (dir, root) = (ctx.state_dir()?, ctx.bundle_root().map(std::path::Path::to_owned));
        api.logger().warn(format!("root={root:?} dir={dir:?} inspect={}", ctx.inspect()));
        Ok(())
    }
}

/// Whether the stream is held.
#[derive(Debug, Deserialize, JsonSchema)]
struct Withholding {
    hold: bool,
}

/// Replaces answers that say a secret.
#[goondan::extension(name = "withholding")]
impl Withholding {
    #[init]
    fn new(config: Withholding) -> Self {
        config
    }

    #[middleware(step)]
    async fn withhold(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if self.hold {
            ctx.hold_stream();
        }
        let result = next.run(ctx).await?;
        let answer = ctx.conversation().iter().rev().find(|message| message.text().contains("secret"));
        if let Some(answer) = answer.map(|message| message.to_message()) {
            ctx.emit(MessageEvent::replace(answer.id().clone(), answer.with_content("withheld")));
        }
        Ok(result)
    }
}

/// Where texts come from.
#[derive(Debug, Deserialize, JsonSchema)]
struct Reminding {
    /// A named pipe.
    path: Option<String>,
}

/// What to be reminded of.
#[derive(Debug, Deserialize, JsonSchema)]
struct Reminder {
    text: String,
}

/// Starts a turn with the text of a named pipe, or of a tool call.
#[goondan::extension(name = "reminder")]
impl Reminding {
    #[init]
    fn new(config: Reminding, api: ExtensionApi, ctx: InitContext) -> Self {
        if let (Some(path), agent) = (config.path.clone(), ctx.agent().clone()) {
            tokio::task::spawn_blocking(move || match std::fs::read_to_string(path) {
                Ok(text) => remind(&api, agent, text),
                Err(error) => api.logger().error(error.to_string()),
            });
        }
        config
    }

    /// Reminds of something in another turn.
    #[tool]
    async fn later(&self, ctx: &ToolContext<'_>, api: &ExtensionApi, reminder: Reminder) -> Result<()> {
        remind(api, ctx.agent_name().clone(), reminder.text);
        Ok(())
    }
}

fn remind(api: &ExtensionApi, agent: AgentName, text: String) {
    api.events().delegate(AgentDelegate::new(agent, text));
}

fn main() -> std::process::ExitCode {
    goondan_cli::main()
}
