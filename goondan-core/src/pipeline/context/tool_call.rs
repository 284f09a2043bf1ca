//! The context of tool-call middlewares.

use std::path::Path;

use serde_json::{Map, Value};

use super::host::ToolCallHost;
use super::shared_members;
use crate::error::Result;
use crate::name::{AgentName, ExtensionName, InstanceKey, TraceId, TurnId};
use crate::pipeline::Frame;
use crate::tool::ToolItem;

/// The context of a tool-call middleware: one call that the model asked for.
///
/// A function under `#[middleware(toolCall)]` takes it as `&mut ToolCallContext<'_>`. Before `next`, the middleware can
/// change the arguments, or refuse the call by returning an error, which the model reads. It can reach neither the
/// messages nor other agents.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct Sandbox;
/// # #[goondan::extension(name = "sandbox")]
/// # impl Sandbox {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// /// Makes every command of the tool `shell__run` a dry run.
/// #[middleware(toolCall)]
/// async fn dry_run(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
///     if ctx.tool_name() == "shell__run" {
///         ctx.args_mut().insert("dryRun".to_owned(), true.into());
///     }
///     next.run(ctx).await
/// }
/// # }
/// ```
// CTX-03, AGENTS-02
pub struct ToolCallContext<'a> {
    pub(crate) host: &'a mut dyn ToolCallHost,
    pub(crate) frame: Frame<'a>,
}

impl ToolCallContext<'_> {
    shared_members!();

    /// Returns the tool that is called, as this step offers it: with its effect, and with the extension or server that
    /// it comes from. `None` if the step does not offer it; such a call fails in the core.
    pub fn tool(&self) -> Option<&ToolItem> {
        self.host.tool()
    }

    /// Returns the working directory of the instance, the default for tools that read and write files. It is created on
    /// first use.
    ///
    /// # Errors
    /// `E_STORE_IO` when it cannot be created.
    pub fn workdir(&self) -> Result<&Path> {
        self.host.workdir()
    }

    /// Returns how many bytes the files that hold whole outputs may have together: `policy.maxOutputBytes`. They are
    /// the numbered files in the working directory that [`NumberedFile`](goondan_text::NumberedFile) of the crate
    /// `goondan-text` makes.
    pub fn max_output_bytes(&self) -> u64 {
        self.host.max_output()
    }
}
