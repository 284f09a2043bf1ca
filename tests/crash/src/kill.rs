//! Owns the parent: it starts children, kills them, and looks at what they leave.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use goondan::store::Opened;
use goondan::{AgentName, Error, ExtensionName, FileStore, InstanceId, InstanceKey, Result, Store};
use serde::Deserialize;

use crate::account::{World, check_ledger, distinct, line};
use crate::child::{AGENT, KEY, Progress, agent};

/// SIGKILL, which a process can neither catch nor notice.
const SIGKILL: i32 = 9;

/// How many children are killed in a row, at most, before somebody looks: each may die while it repairs what the one
/// before it left.
const UNSEEN: u32 = 3;

/// Kills `kills` children, and fails at the first loss.
pub(crate) async fn run(kills: u64, seed: u64) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut trial = Trial {
        random: fastrand::Rng::with_seed(seed),
        worlds: vec![World::empty()],
        next: 1,
        turns: 0,
        pace: Pace::default(),
    };
    eprintln!("killing {kills} times with seed {seed}");
    let start = Instant::now();
    let mut unseen = 0;
    for kill in 1..=kills {
        let outcome = trial.kill_one(dir.path());
        unseen += 1;
        let looks = unseen == UNSEEN || kill == kills || trial.random.u8(..3) > 0;
        let outcome = if outcome.is_ok() && looks {
            unseen = 0;
            trial.look(dir.path()).await
        } else {
            outcome
        };
        if let Err(error) = outcome {
            let place = dir.keep();
            let message = format!("kill {kill} of seed {seed}; the files are in {}", place.display());
            return Err(Error::msg(message).caused_by(error.into_std()));
        }
        if kill % 1000 == 0 {
            eprintln!("{kill} kills, {} turns, {:.0?}", trial.turns, start.elapsed());
        }
    }
    println!("{kills} kills, {} acknowledged turns, nothing lost, nothing twice, {:.0?}", trial.turns, start.elapsed());
    Ok(())
}

struct Trial {
    random: fastrand::Rng,
    /// What may be there; one of it is.
    worlds: Vec<World>,
    /// The number of the next turn: no child uses one that an earlier child may have used.
    next: u64,
    /// How many turns were acknowledged.
    turns: u64,
    pace: Pace,
}

/// How quick children are, so that kills come at all places of what they do.
#[derive(Default)]
struct Pace {
    /// From the start of a child to its first turn done.
    first: Duration,
    /// A turn.
    turn: Duration,
}

impl Trial {
    /// Starts a child, kills it at some moment, and takes into the account what it acknowledged.
    fn kill_one(&mut self, dir: &Path) -> Result<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([Path::new("child"), dir, Path::new(&self.next.to_string())])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let acknowledged = self.kill_at_some_moment(&mut child)?;
        let status = child.wait()?;
        if status.signal() != Some(SIGKILL) {
            return Err(Error::msg(format!("a child ended by itself: {status}")));
        }
        for turn in acknowledged.lines() {
            if turn.parse() != Ok(self.next) {
                return Err(Error::msg(format!("turn {} was expected, not `{turn}`", self.next)));
            }
            self.worlds = self.worlds.iter().map(|world| world.after(self.next)).collect();
            self.next += 1;
            self.turns += 1;
        }
        self.worlds = distinct(self.worlds.iter().flat_map(|world| world.after_a_kill_in(self.next)));
        self.next += 1;
        Ok(())
    }

    /// The moment: some acknowledged turns, or none, and a little time more.
    fn kill_at_some_moment(&mut self, child: &mut Child) -> Result<String> {
        let output = child.stdout.take().ok_or_else(|| Error::msg("the child has no output"))?;
        let mut output = BufReader::new(output);
        // One in four: while the child starts, opens the instance and repairs it.
        let turns = if self.random.u8(..4) == 0 { 0 } else { self.random.u32(1..6) };
        let mut acknowledged = String::new();
        let start = Instant::now();
        for turn in 0..turns {
            output.read_line(&mut acknowledged)?;
            match turn {
                0 => self.pace.first = start.elapsed(),
                _ => self.pace.turn = (start.elapsed() - self.pace.first) / turn,
            }
        }
        let limit = if turns == 0 { self.pace.first } else { self.pace.turn.mul_f64(1.5) };
        let (delay, start) = (limit.mul_f64(self.random.f64()), Instant::now());
        while start.elapsed() < delay {
            std::hint::spin_loop();
        }
        child.kill()?;
        output.read_to_string(&mut acknowledged)?;
        Ok(acknowledged)
    }

    /// Opens the instance, as the next process would, and compares.
    async fn look(&mut self, dir: &Path) -> Result<()> {
        let instance = agent(dir).await?.instance(KEY).await?;
        let lines: Vec<_> = instance.messages().await?.iter().map(|message| line(message)).collect();
        instance.close().await?;
        let seen = World { progress: progress(dir, &lines).await?, lines };
        check_ledger(&dir.join("ledger"), &seen.lines)?;
        if !self.worlds.contains(&seen) {
            return Err(Error::msg(format!(
                "{seen:#?} is none of {} worlds, such as {:#?}",
                self.worlds.len(),
                self.worlds[0]
            )));
        }
        self.worlds = vec![seen];
        Ok(())
    }
}

/// The state of the extension as it is stored, beside the messages that are stored with it.
async fn progress(dir: &Path, lines: &[String]) -> Result<Progress> {
    let id = InstanceId { agent: AgentName::new(AGENT)?, key: InstanceKey::new(KEY)? };
    let Opened { base, interrupted, state, .. } = FileStore::open(dir.join("store"))?.open(&id).await?;
    let stored: Vec<_> = base.iter().map(|message| line(message)).collect();
    if interrupted.is_some() || stored != lines {
        return Err(Error::msg(format!("{lines:#?} were there, {stored:#?} are stored, and {interrupted:?}")));
    }
    let value = state.get(&ExtensionName::new("churn")?).cloned().unwrap_or_default();
    Ok(Option::<Progress>::deserialize(value)?.unwrap_or_default())
}
