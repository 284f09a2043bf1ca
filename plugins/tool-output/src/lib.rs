//! Writes long results of tools to files, and shortens what the model reads.
//!
//! This file has the config and the middleware, and `reply` decides which texts of a reply are shortened.

mod reply;

use goondan::prelude::*;
use goondan_text::{NumberedFile, Place};
use wildmatch::WildMatch;

/// The config of the extension.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The most characters of a result that the model reads, with the note that says where the rest is.
    #[schemars(range(min = 1000))]
    pub max_characters: usize,
    /// Tools whose results are left as they are: names, in which `*` matches any text.
    pub exempt: Vec<String>,
}

impl Default for Config {
    /// Some more than the extension `mcp` leaves of an answer, so that none is shortened twice. What `skills__open`
    /// returns are instructions, and nothing of them should be left out.
    fn default() -> Self {
        Self { max_characters: 40_000, exempt: vec!["skills__open".to_owned()] }
    }
}

/// The extension.
#[derive(Debug)]
pub struct ToolOutput {
    api: ExtensionApi,
    max_characters: usize,
    exempt: Vec<WildMatch>,
}

/// Writes long results of tools to files, and shortens what the model reads.
#[goondan::extension(name = "tool-output")]
impl ToolOutput {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Self {
        let exempt = config.exempt.iter().map(|pattern| WildMatch::new(pattern)).collect();
        Self { api, max_characters: config.max_characters, exempt }
    }

    // Inside of most other layers, so that they see what the model will read.
    #[middleware(toolCall, priority = 900)]
    async fn shorten(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut result = next.run(ctx).await?;
        let exempt = self.exempt.iter().any(|pattern| pattern.matches(ctx.tool_name()));
        // The texts of other errors are limited by the policy of the agent.
        if let Some(reply) = result.to_reply().filter(|_| !exempt) {
            let save = |text: &str, extension| self.save(ctx, text, extension);
            if let Some(short) = reply::shortened(reply, self.max_characters, save) {
                result.set_output(short);
            }
        }
        Ok(result)
    }
}

impl ToolOutput {
    /// Writes a text to a new file. A failure is no error of the call: the tool has done its work, and the model would
    /// call it again.
    fn save(&self, ctx: &ToolCallContext<'_>, text: &str, extension: &'static str) -> Place {
        let name = ["output", ctx.tool_name(), ctx.call_id().as_str()];
        let log = self.api.logger().with("tool", ctx.tool_name()).with("call", ctx.call_id()).with("bytes", text.len());
        let write = |directory| {
            let file = NumberedFile::new(directory, name, extension).within(ctx.max_output_bytes());
            Ok(file.write(text.as_bytes())?)
        };
        match ctx.workdir().and_then(write) {
            Ok(path) => {
                log.with("path", &path).debug("a long output was written to a file");
                Place::File(path)
            }
            Err(error) => {
                log.with("error", error.to_string()).warn("a long output could not be written to a file");
                Place::Lost(error.message().into_owned())
            }
        }
    }
}
