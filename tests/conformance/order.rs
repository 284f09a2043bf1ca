//! ORDER: who wraps whom.

use goondan::prelude::*;
use goondan::{AgentBuilder, BoxFuture, ErrorCode, Middleware, Options, ScriptItem, ToolItem, Value, json};
use goondan_covers::covers;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::support::{Log, LogConfig, agent, one_turn};

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
    /// The layers in the order of their registration: kind, name, priority; no priority means the default.
    layers: Vec<(String, String, Option<i32>)>,
}

/// Registers the layers that its config lists, and a tool that logs `core`.
struct Layers;

#[goondan::extension(name = "layers")]
impl Layers {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        for (kind, name, priority) in config.layers {
            let layer = Layer { name, log: config.log.clone() };
            let options = priority.map_or_else(Options::default, Options::priority);
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

impl goondan::ToolHandler for CoreTool {
    fn call<'a>(&'a self, _: &'a goondan::ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<Value>> {
        self.0.write("core");
        Box::pin(async { Ok(Value::Null) })
    }
}

/// The log of a turn with one tool call, for extensions that register these layers.
async fn log_of(test: &str, extensions: &[&[(&str, &str, Option<i32>)]]) -> Vec<String> {
    let log = Log::new(test);
    let script = [ScriptItem::call("core__run", json!({})), ScriptItem::say("done")];
    let mut agent = agent(script);
    for (index, layers) in extensions.iter().enumerate() {
        agent = agent.linked(format!("layers-{index}"), "layers", json!({ "log": test, "layers": layers }));
    }
    one_turn(agent).await.unwrap();
    log.take()
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[tokio::test]
#[covers("ORDER-10", "ORDER-06", "PIPE-03")]
async fn b_is_outermost_then_a_then_c_for_each_kind() {
    for kind in ["turn", "step", "toolCall"] {
        let a: &[_] = &[(kind, "A", Some(10))];
        let b: &[_] = &[(kind, "B", Some(5))];
        let c: &[_] = &[(kind, "C", Some(10))];
        let log = log_of(&format!("worked example {kind}"), &[a, b, c]).await;
        let expected = match kind {
            // The step chain runs once a step: the one that calls the tool, and the one that answers.
            "step" => "B A C core C A B B A C C A B",
            _ => "B A C core C A B",
        };
        assert_eq!(log, words(expected), "{kind}");
    }
}

#[tokio::test]
#[covers("ORDER-01", "ORDER-02", "ORDER-03")]
async fn among_equals_the_first_registered_is_the_outermost() {
    let log = log_of("equals", &[&[("turn", "first", None)], &[("turn", "second", None)]]).await;
    assert_eq!(log, words("first second core second first"));
}

#[tokio::test]
#[covers("ORDER-04")]
async fn swapping_the_extensions_swaps_the_layers() {
    let log = log_of("swapped", &[&[("turn", "second", None)], &[("turn", "first", None)]]).await;
    assert_eq!(log, words("second first core first second"));
}

#[tokio::test]
#[covers("ORDER-07", "API-09")]
async fn no_priority_is_zero() {
    let layers: &[_] =
        &[("turn", "one", Some(1)), ("turn", "none", None), ("turn", "minus", Some(-1)), ("turn", "zero", Some(0))];
    assert_eq!(log_of("zero", &[layers]).await, words("minus none zero one core one zero none minus"));
}

#[tokio::test]
#[covers("ORDER-08")]
async fn each_kind_has_its_own_order() {
    let one: &[_] = &[("turn", "turn-1", Some(1)), ("toolCall", "call-1", Some(2))];
    let two: &[_] = &[("turn", "turn-2", Some(2)), ("toolCall", "call-2", Some(1))];
    let log = log_of("kinds", &[one, two]).await;
    assert_eq!(log, words("turn-1 turn-2 call-2 call-1 core call-1 call-2 turn-2 turn-1"));
}

#[tokio::test]
#[covers("ORDER-09", "API-08")]
async fn layers_of_one_extension_keep_the_order_of_their_registration() {
    let log = log_of("one extension", &[&[("step", "x", None), ("step", "y", None)]]).await;
    assert_eq!(log, words("x y core y x x y y x"));
}

#[tokio::test]
#[covers("PIPE-17", "PIPE-09")]
async fn the_same_input_gives_the_same_nested_order_every_time() {
    let layers: &[_] = &[("toolCall", "call", None), ("step", "step", None), ("turn", "turn", None)];
    for run in 0..20 {
        let log = log_of(&format!("nesting {run}"), &[layers]).await;
        assert_eq!(log, words("turn step call core call step step step turn"));
    }
}

/// Extensions whose places are said by name.
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

/// An agent with the extensions of these names, in this order.
fn named(test: &str, names: &[&str]) -> AgentBuilder {
    let agent = agent([ScriptItem::say("done")]);
    names.iter().fold(agent, |agent, name| agent.linked(*name, *name, Log::new(test).config()))
}

#[tokio::test]
#[covers("ORDER-11")]
async fn names_beat_priorities_and_the_order_of_registration() {
    for names in [["midway", "nearer", "farther"], ["nearer", "farther", "midway"], ["farther", "midway", "nearer"]] {
        let test = format!("by name {names:?}");
        one_turn(named(&test, &names)).await.unwrap();
        assert_eq!(Log::new(&test).take(), ["farther", "midway", "nearer"], "{names:?}");
    }
}

#[tokio::test]
#[covers("ORDER-11")]
async fn only_an_extension_that_may_be_missing_may_be_missing() {
    one_turn(named("may be missing", &["nearer", "midway"])).await.unwrap();
    assert_eq!(Log::new("may be missing").take(), ["midway", "nearer"]);

    let error = one_turn(named("missing", &["farther"])).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::EXT_ORDER);
    assert!(error.code().is_configuration());
    let report = error.report().to_string();
    assert!(report.contains("`before = \"midway\"`") && report.contains("farther"), "{report}");
    assert!(error.suggestion().unwrap().contains("\"midway?\""), "{report}");
}

#[tokio::test]
#[covers("ORDER-11", "LOAD-12")]
async fn extensions_that_depend_on_one_another_in_a_circle_are_refused_with_the_circle() {
    let error = one_turn(named("circle", &["midway", "third", "around", "within"])).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::EXT_ORDER);
    let message = error.message();
    assert!(message.starts_with("the turn middlewares cannot be ordered: "), "{message}");
    let circle =
        ["around → within → third → around", "within → third → around → within", "third → around → within → third"];
    assert!(circle.iter().any(|circle| message.contains(circle)), "{message}");
    assert!(!message.contains("midway"), "it is no part of the circle: {message}");
    assert!(message.contains("`write` of `third` says `before = \"around\"`"), "{message}");
    assert_eq!(Log::new("circle").take(), [""; 0], "nothing ran");
}
