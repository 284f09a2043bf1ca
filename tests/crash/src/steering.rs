//! Processes that are killed while an input joins their turn: the next one sends the same inputs again.
// STEER-01, ONCE-01

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use goondan::agent::TurnUpdate;
use goondan::event::{AgentEvent, RuntimeEvent};
use goondan::middleware::ToolRequest;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::name::ToolCallId;
use goondan::store::{FileStore, InstanceId, Store, TurnOutcome};
use goondan::{Agent, BoxFuture, Error, Instance, Result, json};

/// The steps of a turn before the one that ends it.
const CALLS: usize = 3;

/// A model that calls a tool some times after each `work`, and then answers.
struct Working;

impl Model for Working {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let mut answers = 0;
        for message in request.messages() {
            match message.role.as_str() {
                "user" if message.content.text().starts_with("work") => answers = 0,
                "assistant" => answers += 1,
                _ => {}
            }
        }
        let call = || ToolRequest::new(ToolCallId::random(), "no__tool", json!({}));
        let response = if answers < CALLS { ModelResponse::tool_calls([call()]) } else { ModelResponse::text("done") };
        Box::pin(std::future::ready(Ok(response)))
    }
}

fn agent(dir: &Path) -> Result<Agent> {
    Agent::builder("steering").model(Working).store(FileStore::open(dir)?).build()
}

/// Runs turns with an input that joins each, from number `start` on, until it is killed. Prints the number of each that
/// has ended.
pub(crate) async fn child(dir: &Path, start: u64) -> Result<()> {
    let instance = agent(dir)?.instance("one").await?;
    for number in start.. {
        steered(&instance, number).await?;
        std::io::stdout().write_all(format!("{number}\n").as_bytes())?;
    }
    Ok(())
}

async fn steered(instance: &Instance, number: u64) -> Result<()> {
    let event = |what: &str| AgentEvent::input(format!("{what} {number}")).with_id(format!("{what}-{number}"));
    let mut turn = instance.run_stream(event("work"));
    let mut joining = None;
    while let Some(update) = turn.next().await {
        let begins =
            |update| matches!(update, TurnUpdate::Event(event) if matches!(*event, RuntimeEvent::StepStarted { .. }));
        if joining.is_none() && begins(update) {
            joining = Some(instance.steer(event("steer")));
        }
    }
    turn.finish().await?;
    match joining {
        Some(joining) => joining.await?,
        // The turn had ended in an earlier process.
        None => instance.steer(event("steer")).await?,
    };
    Ok(())
}

/// Kills `kills` processes at random moments, and then checks that each input is there once and answered once.
pub(crate) async fn run(kills: u64) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut next, mut random) = (0, fastrand::Rng::new());
    for _ in 0..kills {
        next = killed("steering-child", dir.path(), next, random.u64(..30_000))?;
    }
    let instance = agent(dir.path())?.instance("one").await?;
    steered(&instance, next).await?;
    instance.close().await?;
    let store = FileStore::open(dir.path())?;
    let id = InstanceId { agent: "steering".parse()?, key: "one".parse()? };
    let messages = store.read(&id)?.messages;
    for number in 0..=next {
        for what in ["work", "steer"] {
            let text = format!("{what} {number}");
            let count = messages.iter().filter(|message| *message.text() == text).count();
            if count != 1 {
                return Err(Error::msg(format!("`{text}` is there {count} times")));
            }
            let ended = store.outcome(&id, &format!("{what}-{number}").as_str().into()).await?;
            let is_recent = number + 100 > next;
            if is_recent && !ended.as_ref().is_some_and(|ended| matches!(ended.outcome, TurnOutcome::Answered { .. })) {
                return Err(Error::msg(format!("`{text}` was not answered: {ended:?}")));
            }
        }
    }
    // Each turn of work has so many calls and one answer, and an input that came too late one more.
    let answers = messages.iter().filter(|message| message.role().as_str() == "assistant").count();
    let (least, most) = ((CALLS + 1) * (next as usize + 1), (CALLS + 2) * (next as usize + 1));
    if !(least..=most).contains(&answers) {
        return Err(Error::msg(format!("there are {answers} answers, and not {least} to {most}")));
    }
    println!("{kills} kills, {} turns with an input that joined, nothing lost, nothing twice", next + 1);
    Ok(())
}

/// Starts a process that prints the number of each turn which it has ended, kills it after so many microseconds, and
/// returns the number of the first one that it did not end.
pub(crate) fn killed(child: &str, dir: &Path, start: u64, after: u64) -> Result<u64> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(child)
        .args([dir, Path::new(&start.to_string())])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    thread::sleep(Duration::from_micros(after));
    child.kill()?;
    let ended =
        child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(std::result::Result::ok);
    let next = ended.last().and_then(|line| line.parse::<u64>().ok()).map_or(start, |number| number + 1);
    child.wait()?;
    Ok(next)
}
