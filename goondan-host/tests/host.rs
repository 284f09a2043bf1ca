//! Bundles that run: conversations, reloads, background turns, and the way out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use goondan::Error;
use goondan::agent::{BackgroundUpdate, Observer, Told, TurnUpdate, Wants};
use goondan::event::{AgentDelegate, EventScope};
use goondan::host::{Drained, Host, HostReload, OpenError, Source};
use goondan::name::AgentName;
use goondan::store::MemoryStore;
use goondan_covers::covers;
use tempfile::TempDir;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

/// A test that waits longer has failed.
const LONG: Duration = Duration::from_secs(60);

/// Counts the calls of the tool that have begun.
static BEGUN: Semaphore = Semaphore::const_new(0);
/// Lets calls of the tool end.
static MAY_END: Semaphore = Semaphore::const_new(0);

/// A tool that waits for its test.
#[goondan::extension(name = "gate")]
mod gate {
    use goondan::prelude::*;

    #[tool(effect = read)]
    async fn pass() -> Result<()> {
        super::BEGUN.add_permits(1);
        super::MAY_END.acquire().await.map(tokio::sync::SemaphorePermit::forget)?;
        Ok(())
    }

    #[tool(effect = read)]
    async fn hang() -> Result<()> {
        std::future::pending().await
    }
}

/// An extension whose config names what it would run, if it ran something.
#[goondan::extension(name = "actor")]
mod actor {
    use goondan::prelude::*;

    #[derive(Debug, Default, Deserialize, JsonSchema)]
    #[serde(default)]
    struct Config {
        #[schemars(extend("x-goondan" = "command"))]
        command: Vec<String>,
        #[schemars(extend("x-goondan" = "host"))]
        hosts: Vec<String>,
        loud: bool,
    }

    #[init]
    fn open(_config: Config) {}
}

/// A bundle whose agents, `names`, answer `answer`; with `script`, the first of them plays it.
fn bundle(directory: &Path, names: &[&str], answer: &str, script: Option<&str>) {
    let document = |kind: &str, name: &str, spec: &str| {
        format!("apiVersion: goondan.ai/v1\nkind: {kind}\nmetadata: {{ name: {name} }}\nspec: {spec}\n---\n")
    };
    let mut text = document("Extension", "gate", "{ entry: 'linked:gate' }");
    for (index, name) in names.iter().enumerate() {
        let script = script.filter(|_| index == 0).map(str::to_owned);
        let script = script.unwrap_or_else(|| format!("- {{ say: {answer}, repeat: true }}\n"));
        fs::write(directory.join(format!("{name}.yaml.script")), script).unwrap();
        text += &document("Model", name, &format!("{{ provider: scripted, script: ./{name}.yaml.script }}"));
        text +=
            &document("Agent", name, &format!("{{ model: Model/{name}, extensions: [ {{ ref: Extension/gate }} ] }}"));
    }
    fs::write(directory.join("goondan.yaml"), text).unwrap();
}

async fn open(directory: &TempDir) -> Result<Host, OpenError> {
    Source::new(directory.path()).read()?.open(MemoryStore::new()).await
}

/// Serves reloads in a task, and returns their outcomes.
fn serve(host: &Host) -> mpsc::UnboundedReceiver<Result<HostReload, OpenError>> {
    let (sender, outcomes) = mpsc::unbounded_channel();
    tokio::spawn(host.watch().unwrap().serve(move |outcome| _ = sender.send(outcome)));
    outcomes
}

async fn answer(host: &Host, agent: &str, key: &str) -> Result<String, Error> {
    Ok(host.instance(agent, key).await?.run("go").await?.text().into_owned())
}

#[tokio::test]
async fn conversations_are_opened_by_name_until_the_drain() {
    let directory = TempDir::new().unwrap();
    bundle(directory.path(), &["one", "two"], "hi", None);
    let host = open(&directory).await.unwrap();
    assert_eq!(answer(&host, "one", "a").await.unwrap(), "hi");
    assert_eq!(answer(&host, "two", "a").await.unwrap(), "hi");
    assert_eq!(answer(&host, "on", "a").await.unwrap_err().code(), "E_CONFIG_REF_NOT_FOUND");
    let open = host.instance("one", "a").await.unwrap();
    assert_eq!(host.drain(LONG).await.unwrap(), Drained::Closed);
    assert_eq!(open.run("go").await.unwrap_err().code(), "E_INSTANCE_CLOSED");
    assert_eq!(answer(&host, "one", "b").await.unwrap_err().code(), "E_INSTANCE_CLOSED");
}

#[tokio::test]
async fn a_bundle_with_mistakes_is_refused_with_all_of_them() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("goondan.yaml"), "apiVersion: goondan.ai/v1\nkind: Agent\nspec: { modle: x }\n")
        .unwrap();
    let error = open(&directory).await.unwrap_err();
    assert!(matches!(&error, OpenError::Diagnostics(all) if all.len() > 1), "{error}");
    let code = error.code();
    assert_eq!(*Error::from(error).code(), code);
}

#[tokio::test]
async fn files_that_change_are_read_again_and_open_conversations_continue() {
    let directory = TempDir::new().unwrap();
    bundle(directory.path(), &["one"], "old", None);
    let host = open(&directory).await.unwrap();
    let mut turns = host.background_turns();
    let mut watched = host.background_turns().with_updates();
    let watched = tokio::spawn(async move {
        let mut pieces = Vec::new();
        loop {
            match watched.next().await {
                BackgroundUpdate::Running(told) if matches!(told.update, TurnUpdate::Text { .. }) => pieces.push(told),
                BackgroundUpdate::Running(_) => {}
                BackgroundUpdate::Ended(ended) => return (pieces, ended),
                other => panic!("{other:?}"),
            }
        }
    });
    let mut outcomes = serve(&host);
    let instance = host.instance("one", "a").await.unwrap();
    assert_eq!(instance.run("go").await.unwrap().text(), "old");

    bundle(directory.path(), &["one", "two"], "new", None);
    let reload = timeout(LONG, outcomes.recv()).await.unwrap().unwrap().unwrap();
    assert_eq!(reload.agents.keys().map(AgentName::as_str).collect::<Vec<_>>(), ["one"]);
    assert_eq!(instance.run("go").await.unwrap().text(), "new");
    assert_eq!(instance.messages().await.unwrap().len(), 4);

    // Turns of the agent that was added are delivered too.
    let event = AgentDelegate::new(AgentName::new("two").unwrap(), "in the background");
    instance.events().delegate(event).await.unwrap();
    let BackgroundUpdate::Ended(turn) = timeout(LONG, turns.next()).await.unwrap() else { panic!("a turn was missed") };
    assert_eq!((turn.agent.as_str(), &*turn.outcome.as_ref().unwrap().text()), ("two", "new"));
    let (pieces, ended) = timeout(LONG, watched).await.unwrap().unwrap();
    assert_eq!((ended.input.id.clone(), pieces.len()), (turn.input.id.clone(), 1));
    assert_eq!((&pieces[0].agent, &pieces[0].event), (&turn.agent, &turn.input.id));
    assert!(matches!(&pieces[0].update, TurnUpdate::Text { text, .. } if text == "new"));

    // What is broken changes nothing.
    fs::write(directory.path().join("goondan.yaml"), "kind: Nothing\n").unwrap();
    assert!(timeout(LONG, outcomes.recv()).await.unwrap().unwrap().is_err());
    assert_eq!(instance.run("go").await.unwrap().text(), "new");
}

#[tokio::test]
async fn an_agent_with_open_conversations_cannot_be_removed() {
    let directory = TempDir::new().unwrap();
    bundle(directory.path(), &["one", "two"], "hi", None);
    let host = open(&directory).await.unwrap();
    let instance = host.instance("two", "a").await.unwrap();
    bundle(directory.path(), &["one"], "new", None);
    let error = host.reloader().reload(None).await.unwrap_err();
    assert_eq!(error.code().as_str(), "E_CONFIG_REF_NOT_FOUND");
    assert_eq!(instance.run("go").await.unwrap().text(), "hi");
    assert_eq!(answer(&host, "one", "a").await.unwrap(), "hi");
}

#[tokio::test]
async fn a_drain_waits_for_turns_that_run() {
    let directory = TempDir::new().unwrap();
    let script = "- { call: { tool: gate__pass } }\n- { say: done }\n";
    bundle(directory.path(), &["one"], "", Some(script));
    let host = open(&directory).await.unwrap();
    let turn = tokio::spawn({
        let host = host.clone();
        async move { answer(&host, "one", "a").await }
    });
    BEGUN.acquire().await.unwrap().forget();
    let drain = tokio::spawn(async move { host.drain(LONG).await });
    tokio::task::yield_now().await;
    assert!(!drain.is_finished());
    MAY_END.add_permits(1);
    assert_eq!(turn.await.unwrap().unwrap(), "done");
    assert_eq!(drain.await.unwrap().unwrap(), Drained::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_with_its_grace() {
    let directory = TempDir::new().unwrap();
    bundle(directory.path(), &["one"], "", Some("- { call: { tool: gate__hang } }\n"));
    let host = open(&directory).await.unwrap();
    let instance = host.instance("one", "a").await.unwrap();
    let mut turn = Box::pin(instance.run("go"));
    assert!(timeout(Duration::from_millis(10), &mut turn).await.is_err(), "the turn runs");
    let begin = tokio::time::Instant::now();
    let drained = tokio::select! {
        _ = &mut turn => panic!("the turn hangs"),
        drained = host.drain(Duration::from_secs(5)) => drained,
    };
    assert_eq!(drained.unwrap(), Drained::TimedOut);
    assert_eq!(begin.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_without_handles_closes_after_five_minutes() {
    let directory = TempDir::new().unwrap();
    bundle(directory.path(), &["one"], "hi", None);
    let host = open(&directory).await.unwrap();
    drop(host.instance("one", "a").await.unwrap());
    // As long as it is open, its agent cannot be removed.
    bundle(directory.path(), &["two"], "hi", None);
    tokio::time::sleep(Duration::from_secs(299)).await;
    host.reloader().reload(None).await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(2)).await;
    host.reloader().reload(None).await.unwrap();
}

/// A bundle with the extension `actor`, whose agent answers `answer`.
fn acting(directory: &TempDir, answer: &str, config: &str) {
    bundle(directory.path(), &["one"], answer, None);
    let file = directory.path().join("goondan.yaml");
    let text = fs::read_to_string(&file).unwrap().replace("linked:gate", "linked:actor");
    fs::write(file, text.replace("'linked:actor' }", &format!("'linked:actor', config: {config} }}"))).unwrap();
}

fn added(outcome: Result<HostReload, OpenError>) -> String {
    let Err(OpenError::Adds(added)) = outcome else { panic!("nothing is added: {outcome:?}") };
    added.to_string()
}

#[tokio::test]
#[covers("TREE-01")]
async fn a_reload_that_adds_something_waits_until_it_is_accepted() {
    let directory = TempDir::new().unwrap();
    acting(&directory, "old", "{ command: [first] }");
    let host = open(&directory).await.unwrap();
    let mut reloader = host.reloader();
    assert!(reloader.waiting().is_empty());

    // Other settings, and less, are taken.
    acting(&directory, "other", "{ command: [first], loud: true }");
    reloader.reload(None).await.unwrap();
    assert_eq!(answer(&host, "one", "a").await.unwrap(), "other");

    acting(&directory, "new", "{ command: [npx, foo], hosts: ['https://a.b/c'] }");
    assert_eq!(added(reloader.reload(None).await), "command npx foo, host https://a.b");
    assert_eq!(answer(&host, "one", "a").await.unwrap(), "other");
    assert_eq!(reloader.waiting().to_string(), "command npx foo, host https://a.b");
    assert_eq!(added(reloader.reload(None).await), "command npx foo, host https://a.b");

    // What is accepted is what was shown.
    acting(&directory, "new", "{ command: [npx, foo], hosts: ['https://a.b', 'https://a.c'] }");
    assert_eq!(added(reloader.accept().await), "host https://a.c");
    assert_eq!(answer(&host, "one", "a").await.unwrap(), "other");
    reloader.accept().await.unwrap();
    assert!(reloader.waiting().is_empty());
    assert_eq!(answer(&host, "one", "a").await.unwrap(), "new");

    // It is in use now. What is gone would be added again.
    acting(&directory, "newer", "{ command: [npx, foo] }");
    reloader.reload(None).await.unwrap();
    acting(&directory, "newer", "{ command: [npx, foo], hosts: ['https://a.c'] }");
    assert_eq!(added(reloader.reload(None).await), "host https://a.c");
    // Taking it back needs no consent, and a mistake is told first.
    fs::write(directory.path().join("goondan.yaml"), "kind: Nothing\n").unwrap();
    assert!(matches!(reloader.accept().await, Err(OpenError::Diagnostics(_))));
    acting(&directory, "newest", "{ command: [npx, foo] }");
    reloader.reload(None).await.unwrap();
    assert_eq!(answer(&host, "one", "a").await.unwrap(), "newest");
}

/// An extension that guards.
#[goondan::extension(name = "warden", guard)]
mod warden {
    use goondan::prelude::*;

    #[middleware(toolCall)]
    async fn look(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        next.run(ctx).await
    }
}

#[tokio::test]
#[covers("GUARD-01")]
async fn a_reload_that_takes_a_guard_away_waits_until_it_is_accepted() {
    let directory = TempDir::new().unwrap();
    let write = |answer: &str, extensions: &str| {
        bundle(directory.path(), &["one", "two"], answer, None);
        let file = directory.path().join("goondan.yaml");
        let swarm = format!(
            "apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: {{ name: warden }}\n\
             spec: {{ entry: 'linked:warden' }}\n---\n\
             apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: {{ name: team }}\nspec: {{ extensions: [ {extensions} ], \
             agents: [ {{ ref: Agent/one }}, {{ ref: Agent/two }} ], entryAgent: Agent/one }}\n"
        );
        fs::write(&file, fs::read_to_string(&file).unwrap() + &swarm).unwrap();
    };
    write("old", "{ ref: Extension/warden }");
    let host = open(&directory).await.unwrap();
    let mut reloader = host.reloader();
    write("new", "");
    assert_eq!(added(reloader.reload(None).await), "unguarded one by warden, unguarded two by warden");
    assert_eq!(answer(&host, "two", "a").await.unwrap(), "old");
    reloader.accept().await.unwrap();
    assert_eq!(answer(&host, "two", "a").await.unwrap(), "new");
    // More guards need no consent.
    write("guarded", "{ ref: Extension/warden }");
    reloader.reload(None).await.unwrap();
    assert_eq!(answer(&host, "two", "a").await.unwrap(), "guarded");
}

#[tokio::test]
#[covers("TREE-01")]
async fn a_host_that_watches_reports_what_waits() {
    let directory = TempDir::new().unwrap();
    acting(&directory, "old", "{}");
    let host = open(&directory).await.unwrap();
    let mut outcomes = serve(&host);
    acting(&directory, "new", "{ command: [npx, foo] }");
    let outcome = timeout(LONG, outcomes.recv()).await.unwrap().unwrap();
    let error = Error::from(outcome.unwrap_err());
    assert_eq!(error.code().as_str(), "E_RELOAD_ADDS");
    assert_eq!(error.message(), "the changed bundle adds: command npx foo");
    assert_eq!(answer(&host, "one", "a").await.unwrap(), "old");
}

/// Counts the turns of each agent.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<BTreeMap<String, u32>>>);

impl Observer for Turns {
    fn wants(&self) -> Wants {
        Wants::EVENTS
    }

    fn told(&self, scope: &EventScope, what: &Told<'_>) {
        if let Told::Event(event) = what
            && event.name() == "turn.completed"
        {
            *self.0.lock().unwrap().entry(scope.agent_name.to_string()).or_default() += 1;
        }
    }
}

#[tokio::test]
#[covers("OBSERVE-01")]
async fn an_observer_is_told_of_all_agents_also_of_those_that_a_reload_adds() {
    let directory = TempDir::new().unwrap();
    bundle(directory.path(), &["one"], "hi", None);
    let (host, turns) = (open(&directory).await.unwrap(), Turns::default());
    answer(&host, "one", "a").await.unwrap();
    host.observe(turns.clone());
    answer(&host, "one", "a").await.unwrap();
    bundle(directory.path(), &["one", "two"], "hi", None);
    host.reloader().reload(None).await.unwrap();
    host.reloader().reload(None).await.unwrap();
    answer(&host, "one", "a").await.unwrap();
    answer(&host, "two", "a").await.unwrap();
    let told = turns.0.lock().unwrap().clone();
    assert_eq!(told, BTreeMap::from([("one".to_owned(), 2), ("two".to_owned(), 1)]));
}

#[tokio::test]
async fn one_reloader_watches_at_a_time() {
    let directory = TempDir::new().unwrap();
    bundle(directory.path(), &["one"], "hi", None);
    let host = open(&directory).await.unwrap();
    let watching = host.watch().unwrap();
    assert_eq!(host.watch().err().unwrap().code(), "E_RELOAD_TAKEN");
    drop(watching);
    assert!(host.watch().is_ok());
}
