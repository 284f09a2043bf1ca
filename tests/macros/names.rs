//! Parameters and paths under aliases and renamed imports.

use ::goondan as renamed;
use renamed::middleware::{MiddlewareKind, ToolCallContext, TurnResult};
use renamed::prelude::{
    Deserialize, Event as Happened, ExtensionApi as Handle, JsonSchema, Next as Rest, Step as Round,
    StepContext as Seen, ToolContext as Call,
};
use serde_json::json;

use crate::support::{middlewares, register};

type Done<T> = renamed::Result<T>;
type RestOfTurn<'a> = Rest<'a, renamed::middleware::Turn>;
type CallSeen<'a, 'h> = &'a Call<'h>;
type TurnSeen<'a, 'h> = &'a mut renamed::middleware::TurnContext<'h>;

trait Configured {
    type Config;
}

#[derive(Deserialize, JsonSchema)]
struct Settings {
    one: u8,
}

struct Aliased {
    one: u8,
}

impl Configured for Aliased {
    type Config = Settings;
}

#[renamed::extension(name = "aliased", crate = self::renamed)]
impl Aliased {
    #[init]
    fn new(config: <Self as Configured>::Config, _: Handle) -> Done<Aliased> {
        Ok(Self { one: config.one })
    }

    #[middleware(turn)]
    async fn turn(&self, next: RestOfTurn<'_>, ctx: TurnSeen<'_, '_>) -> Done<TurnResult> {
        assert_eq!(self.one, 1);
        next.run(ctx).await
    }

    #[tool]
    async fn read(&self, input: <Self as Configured>::Config, _: CallSeen<'_, '_>, _: &Handle) -> Done<u8> {
        Ok(input.one + self.one)
    }

    #[tool(blocking)]
    fn scan(&self, input: <Self as Configured>::Config, _: &Handle) -> Done<u8> {
        Ok(input.one)
    }

    #[on("x")]
    async fn on(&self, _: &Happened) -> Done<()> {
        Ok(())
    }

    #[cleanup]
    async fn cleanup(&self, _: &Handle) -> Done<()> {
        Ok(())
    }

    #[middleware(step)]
    async fn step(
        &self,
        ctx: &mut Seen<'_>,
        next: Rest<'_, Round>,
    ) -> Result<renamed::middleware::StepResult, renamed::middleware::Failure<Round>> {
        next.catch(ctx).await
    }

    #[middleware(toolCall)]
    async fn refuse(
        &self,
        _: Rest<'_, renamed::middleware::ToolCall>,
        _: &mut ToolCallContext<'_>,
    ) -> Done<renamed::middleware::ToolCallResult> {
        Err(renamed::Error::msg("not today"))
    }

    #[middleware(toolCall)]
    async fn refuse_blindly(
        &self,
        _next: Rest<'_, renamed::middleware::ToolCall>,
    ) -> Done<renamed::middleware::ToolCallResult> {
        Err(renamed::Error::msg("never"))
    }
}

#[test]
fn aliases_renames_and_any_order() {
    let names = ["turn", "step", "refuse", "refuse_blindly"].map(str::to_owned);
    let kinds = [MiddlewareKind::Turn, MiddlewareKind::Step, MiddlewareKind::ToolCall, MiddlewareKind::ToolCall];
    let expected: Vec<_> = kinds.into_iter().zip(names).map(|(kind, name)| (kind, name, 0)).collect();
    assert_eq!(middlewares::<Aliased>(json!({ "one": 1 })), expected);
    let aliased = register::<Aliased>(json!({ "one": 1 })).unwrap();
    assert_eq!(aliased.call("aliased__read", json!({ "one": 2 })).unwrap(), 3);
    assert_eq!(aliased.call("aliased__scan", json!({ "one": 2 })).unwrap(), 2);
}

/// Declares an extension: the arguments of its attributes are fragments of this macro.
macro_rules! passing {
    ($type:ident, $name:literal, $kind:ident, $priority:literal, $context:ty, $tool:literal, $time:literal, $on:literal) => {
        struct $type;

        #[renamed::extension(name = $name)]
        impl $type {
            #[init]
            fn new() -> Self {
                Self
            }

            #[middleware($kind, priority = $priority)]
            async fn pass(&self, ctx: $context, next: Rest<'_, Round>) -> Done<renamed::middleware::StepResult> {
                next.run(ctx).await
            }

            #[tool(name = $tool, timeout = $time)]
            async fn tool(&self) -> Done<()> {
                Ok(())
            }

            #[on($on)]
            async fn on(&self) -> Done<()> {
                Ok(())
            }
        }
    };
}

passing!(Passing, "passing", step, -3, &mut Seen<'_>, "a__b", "5s", "x.*");

#[test]
fn extension_from_a_macro() {
    assert_eq!(middlewares::<Passing>(json!({})), [(MiddlewareKind::Step, "pass".to_owned(), -3)]);
    let names = register::<Passing>(json!({})).unwrap().names();
    assert_eq!(names, ["middleware pass", "tool a__b", "on x.*"]);
}

/// The path in `crate` is resolved inside the module, like every path in it.
#[renamed::extension(name = "renamed-module", crate = renamed)]
mod renamed_module {
    use ::goondan as renamed;

    #[init]
    fn start(_: renamed::extension::ExtensionApi) {}

    #[middleware(turn)]
    async fn turn(
        ctx: &mut renamed::middleware::TurnContext<'_>,
        next: renamed::middleware::Next<'_, renamed::middleware::Turn>,
    ) -> renamed::Result<renamed::middleware::TurnResult> {
        next.run(ctx).await
    }

    #[tool(blocking, timeout = "5s")]
    fn tool() -> renamed::Result<()> {
        Ok(())
    }

    #[on("x")]
    async fn on() -> renamed::Result<()> {
        Ok(())
    }

    #[cleanup]
    async fn cleanup() {}
}

#[test]
fn renamed_dependency_in_a_module() {
    assert_eq!(register::<renamed_module::Extension>(json!({})).unwrap().names().len(), 4);
}
