//! Extensions whose layers log in which order they run.

use goondan::middleware::{Middleware, MiddlewareOptions};
use goondan::prelude::*;
use goondan::tool::ToolItem;
use goondan::{BoxFuture, Value};

use crate::{Log, LogConfig};

/// A layer of any kind that logs its name on the way in and out.
struct Layer {
    name: String,
    log: Log,
}

macro_rules! layer {
    ($kind:ident, $context:ident, $result:ident) => {
        impl Middleware<$kind> for Layer {
            fn handle<'a>(
                &'a self,
                ctx: &'a mut $context<'_>,
                next: Next<'a, $kind>,
            ) -> BoxFuture<'a, Result<$result>> {
                Box::pin(async move {
                    self.log.write(&self.name);
                    let result = next.run(ctx).await;
                    self.log.write(&self.name);
                    result
                })
            }
        }
    };
}

layer!(Turn, TurnContext, TurnResult);
layer!(Step, StepContext, StepResult);
layer!(ToolCall, ToolCallContext, ToolCallResult);

#[derive(Debug, Deserialize, JsonSchema)]
struct Config {
    log: Log,
    /// The layers in the order of their registration: kind, name, and priority if it is not the default.
    layers: Vec<(String, String, Option<i32>)>,
}

/// Registers the layers that its config lists, and a tool that logs `core`.
pub struct Layers;

#[goondan::extension(name = "layers")]
impl Layers {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        for (kind, name, priority) in config.layers {
            let layer = Layer { name, log: config.log.clone() };
            let options = priority.map_or_else(MiddlewareOptions::default, MiddlewareOptions::priority);
            match kind.as_str() {
                "turn" => api.pipeline().register(Turn, layer, options)?,
                "step" => api.pipeline().register(Step, layer, options)?,
                "toolCall" => api.pipeline().register(ToolCall, layer, options)?,
                _ => return Err(Error::msg(format!("no kind {kind}"))),
            }
        }
        api.tools().register(ToolItem::new("core__run")?, CoreTool(config.log))?;
        Ok(Self)
    }
}

struct CoreTool(Log);

impl goondan::tool::ToolHandler for CoreTool {
    fn call<'a>(&'a self, _: &'a goondan::tool::ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        self.0.write("core");
        Box::pin(async { Ok(Value::Null.into()) })
    }
}

/// Extensions that are ordered by the names of others.
mod named {
    use super::*;

    macro_rules! extension {
        ($module:ident, $name:literal, $($option:tt)*) => {
            pub(crate) mod $module {
                use super::*;

                pub(crate) struct Logged(Log);

                #[goondan::extension(name = $name)]
                impl Logged {
                    #[init]
                    fn new(config: LogConfig) -> Self {
                        Self(config.log)
                    }

                    #[middleware(turn, $($option)*)]
                    async fn write(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
                        self.0.write($name);
                        next.run(ctx).await
                    }
                }
            }
        };
    }

    extension!(midway, "midway", priority = -5);
    extension!(farther, "farther", priority = 10, before = "midway");
    extension!(nearer, "nearer", priority = -10, after = ["midway", "farther?"]);
    extension!(around, "around", before = "within");
    extension!(within, "within", before = "third");
    extension!(third, "third", before = "around");
}
