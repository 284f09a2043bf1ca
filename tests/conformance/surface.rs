//! API and LOG: what the handle of an extension offers.

use std::io;
use std::sync::{Arc, Mutex};

use goondan::prelude::*;
use goondan::{BoxFuture, ErrorCode, Middleware, Options, ScriptItem, ToolItem, json};
use goondan_covers::covers;

use crate::support::{agent, one_turn};
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
#[covers("API-01", "ENTRY-07", "LOG-01", "LOG-02")]
async fn all_five_members_are_there_from_init_on_and_log_lines_carry_their_place() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_writer({
            let lines = lines.clone();
            move || lines.clone()
        })
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let turn = one_turn(agent([ScriptItem::say("hi")]).extension::<Surfaces>(json!({}))).await.unwrap();
    drop(guard);

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let line = |what: &str| text.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what} in {text}"));
    assert!(line("ready").contains(r#"fields={"answer":42}"#), "{}", line("ready"));
    for (level, what) in [("DEBUG", "to debug"), ("INFO", "to inform"), ("WARN", "to warn"), ("ERROR", "to complain")] {
        let line = line(what);
        let turn = format!("turn={}", turn.turn_id());
        let parts = [level, "agent=assistant", "instance=test", "extension=surfaces", "step=0", turn.as_str()];
        for part in parts.into_iter().chain([r#"fields={"list":[1,2],"name":"x"}"#]) {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
}

/// Log lines in memory.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
