//! API and LOG: what the handle of an extension offers.

use goondan::prelude::*;
use goondan::testing::Chat;
use goondan::{BoxFuture, ErrorCode, LogLevel, Middleware, Options, ToolItem, json};
use goondan_covers::covers;

use crate::support::agent;
use crate::tools::Answer;

/// Touches all five members in `#[init]`, and logs at every level from everywhere.
struct Surfaces {
    api: ExtensionApi,
}

struct PassingOn;

impl Middleware<Turn> for PassingOn {
    fn handle<'a>(&'a self, ctx: &'a mut TurnContext<'_>, next: Next<'a, Turn>) -> BoxFuture<'a, Result<TurnResult>> {
        Box::pin(next.run(ctx))
    }
}

#[goondan::extension(name = "surfaces")]
impl Surfaces {
    #[init]
    fn new(api: ExtensionApi) -> Result<Self> {
        api.pipeline().register(Turn, PassingOn, Options::default())?;
        api.tools().register(ToolItem::new("surfaces__tool")?, Answer(json!(1)))?;
        assert_eq!(api.state().get::<u32>()?, None);
        api.events().on("turn.completed", |_: Event| async { Ok(()) })?.detach();
        api.events().emit("surfaces.ready", ());
        api.logger().with("answer", 42).info("ready");
        Ok(Self { api })
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let logger = self.api.logger().with("list", [1, 2]).with("name", "x");
        logger.debug("to debug");
        logger.info("to inform");
        logger.warn("to warn");
        logger.error("to complain");
        next.run(ctx).await
    }
}

#[tokio::test]
#[covers("API-01", "ENTRY-07", "LOG-01", "LOG-02", "TEST-01")]
async fn all_five_members_are_there_from_init_on_and_log_lines_carry_their_place() {
    let chat = Chat::with::<Surfaces>(json!({})).start().await.unwrap();
    let turn = chat.say("hello").await.unwrap();
    let logs = chat.logs();
    let line = |what: &str| logs.iter().find(|line| line.text == what).unwrap_or_else(|| panic!("{what} in {logs:?}"));
    assert_eq!(line("ready").fields["answer"], 42);
    for (level, what) in [
        (LogLevel::Debug, "to debug"),
        (LogLevel::Info, "to inform"),
        (LogLevel::Warn, "to warn"),
        (LogLevel::Error, "to complain"),
    ] {
        let line = line(what);
        assert_eq!((line.level, line.extension.as_deref()), (level, Some("surfaces")));
        assert_eq!((&line.fields["list"], &line.fields["name"]), (&json!([1, 2]), &json!("x")));
        assert_eq!((&line.context["agent"], &line.context["step"]), (&json!("assistant"), &json!(0)));
        assert_eq!(line.context["turn"], turn.turn_id().as_str());
        assert!(line.context.contains_key("instance"), "{line:?}");
    }
    assert_eq!(chat.events("surfaces.ready").len(), 1);
}

/// Needs something that no host has by itself.
struct Needy;

#[goondan::extension(name = "needy", requires = ["state", "quantum-link"])]
impl Needy {
    #[init]
    fn new() -> Self {
        Self
    }
}

#[tokio::test]
#[covers("COMPAT-02", "COMPAT-03")]
async fn a_missing_capability_stops_the_start_and_is_named() {
    let error = agent([]).extension::<Needy>(json!({})).build().await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_COMPAT, "needy"));
    assert!(error.message().contains("quantum-link") && !error.message().contains("`state`"), "{error}");
    assert!(agent([]).capability("quantum-link").extension::<Needy>(json!({})).build().await.is_ok());
}
