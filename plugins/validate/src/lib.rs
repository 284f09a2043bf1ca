//! Limits and rewrites the arguments of tool calls, by rules from its config.
//!
//! This file has the config and the middleware, `rule` the effect of one rule on arguments.
// PATTERN-VALIDATE

mod rule;

use goondan::ErrorCode;
use goondan::prelude::*;

pub use rule::{Replace, Rule};

/// The config of the extension.
///
/// ```yaml
/// rules:
///   - { tool: "bash__*", path: /command, maxLength: 10000 }
///   - { tool: "bash__*", path: /command, deny: ["rm -rf", "sudo "] }
///   - { tool: "file__*", path: /path, require: true, replace: { from: "~/", to: "/home/agent/" } }
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The rules, in their order. Each gets the arguments as the rules before it left them.
    pub rules: Vec<Rule>,
}

impl Default for Config {
    /// Shell commands of at most 10000 characters.
    fn default() -> Self {
        Self { rules: vec![Rule::max_length("bash__*", "/command", rule::SHELL_COMMAND)] }
    }
}

/// The extension.
#[derive(Debug)]
pub struct Validate {
    api: ExtensionApi,
    rules: Vec<Rule>,
}

/// Limits and rewrites the arguments of tool calls, by rules.
// The priority puts the layer inside those with a priority of 0 or near it: it checks the arguments that the tool
// will get, with the changes of all other extensions.
#[goondan::extension(name = "validate", guard)]
impl Validate {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        match config.rules.iter().position(Rule::has_no_effect) {
            None => Ok(Self { api, rules: config.rules }),
            Some(index) => Err(Error::new(ErrorCode::EXT_CONFIG, format!("/rules/{index} asks for nothing"))
                .suggest("give it `require`, `replace`, `deny` or `maxLength`, or take it out")),
        }
    }

    #[middleware(toolCall, priority = 1000)]
    async fn check(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let tool = ctx.tool_name().to_owned();
        for rule in self.rules.iter().filter(|rule| rule.is_for(&tool)) {
            // The error becomes the result of the call: the tool does not run, and the model reads the error.
            for cut in rule.apply(&tool, ctx.args_mut())? {
                let log = self.api.logger().with("tool", &tool).with("call", ctx.call_id()).with("path", &rule.path);
                log.with("length", cut.length).warn(format!("an argument was cut to {} characters", cut.limit));
            }
        }
        next.run(ctx).await
    }
}
