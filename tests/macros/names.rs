//! Types are found whatever they are called, and whatever else is called like ours.

use ::goondan as renamed;
use renamed::prelude::{
    Deserialize, ExtensionApi as Handle, JsonSchema, Next as Rest, Step as Round, StepContext as Seen,
};
use renamed::{MiddlewareKind, ToolCallContext, TurnResult};
use serde_json::json;

use crate::support::layers;

type Done<T> = renamed::Result<T>;
type RestOfTurn<'a> = Rest<'a, renamed::Turn>;
type TurnSeen<'a, 'h> = &'a mut renamed::TurnContext<'h>;

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

    #[middleware(step)]
    async fn step(
        &self,
        ctx: &mut Seen<'_>,
        next: Rest<'_, Round>,
    ) -> Result<renamed::StepResult, renamed::Failure<Round>> {
        next.catch(ctx).await
    }

    #[middleware(toolCall)]
    async fn refuse(
        &self,
        _: Rest<'_, renamed::ToolCall>,
        _: &mut ToolCallContext<'_>,
    ) -> Done<renamed::ToolCallResult> {
        Err(renamed::Error::msg("not today"))
    }

    #[middleware(toolCall)]
    async fn refuse_blindly(&self, _next: Rest<'_, renamed::ToolCall>) -> Done<renamed::ToolCallResult> {
        Err(renamed::Error::msg("never"))
    }
}

#[test]
fn aliases_renames_and_any_order() {
    let names = ["turn", "step", "refuse", "refuse_blindly"].map(str::to_owned);
    let kinds = [MiddlewareKind::Turn, MiddlewareKind::Step, MiddlewareKind::ToolCall, MiddlewareKind::ToolCall];
    let expected: Vec<_> = kinds.into_iter().zip(names).map(|(kind, name)| (kind, name, 0)).collect();
    assert_eq!(layers::<Aliased>(json!({ "one": 1 })), expected);
}

/// Everything that an expansion could mean by mistake means something else here.
mod shadowed {
    #![no_implicit_prelude]

    mod goondan {}
    mod std {}
    mod core {}
    #[allow(non_camel_case_types, dead_code)]
    struct str;
    #[allow(non_camel_case_types, dead_code)]
    struct u8;
    #[allow(dead_code)]
    struct Result;
    #[allow(dead_code)]
    struct Box;
    #[allow(unused_macros)]
    macro_rules! concat {
        () => {};
    }
    #[allow(unused_macros)]
    macro_rules! env {
        () => {};
    }

    pub(super) struct Shadowed;

    #[::goondan::extension(name = "shadowed")]
    impl Shadowed {
        #[init]
        fn new(_api: ::goondan::ExtensionApi) -> Self {
            Self
        }

        #[middleware(turn)]
        async fn turn(
            &self,
            ctx: &mut ::goondan::TurnContext<'_>,
            next: ::goondan::Next<'_, ::goondan::Turn>,
        ) -> ::goondan::Result<::goondan::TurnResult> {
            next.run(ctx).await
        }
    }
}

#[test]
fn nothing_of_the_users_scope_is_meant() {
    assert_eq!(layers::<shadowed::Shadowed>(json!({})).len(), 1);
}

/// Written by a macro of somebody else.
macro_rules! passing {
    ($type:ident, $name:literal, $kind:ident, $priority:literal, $context:ty) => {
        struct $type;

        #[renamed::extension(name = $name)]
        impl $type {
            #[init]
            fn new() -> Self {
                Self
            }

            #[middleware($kind, priority = $priority)]
            async fn pass(&self, ctx: $context, next: Rest<'_, Round>) -> Done<renamed::StepResult> {
                next.run(ctx).await
            }
        }
    };
}

passing!(Passing, "passing", step, -3, &mut Seen<'_>);

#[test]
fn extension_from_a_macro() {
    assert_eq!(layers::<Passing>(json!({})), [(MiddlewareKind::Step, "pass".to_owned(), -3)]);
}
