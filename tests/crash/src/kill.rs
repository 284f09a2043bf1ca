//! Parent process: starts children, kills them, and checks what they leave.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use goondan::name::{AgentName, ExtensionName, InstanceKey};
use goondan::store::Opened;
use goondan::store::{FileStore, InstanceId, Store};
use goondan::{Error, Result};
use serde::Deserialize;

use crate::child::{AGENT, KEY, Progress, agent, event};
use crate::expected::{Snapshot, check_ledger, distinct, line};

/// The number of SIGKILL, which a process cannot catch.
const SIGKILL: i32 = 9;

/// How many children are killed in a row, at most, before a check. A child may be killed while it recovers from the
/// kill of the previous one.
const MAX_UNCHECKED: u32 = 3;

/// Kills `kills` children, and fails at the first loss. With `resumes`, each child runs the event again that the one
/// before did not finish.
pub(crate) async fn run(kills: u64, seed: u64, resumes: bool) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut trial = Trial {
        random: fastrand::Rng::with_seed(seed),
        possible: vec![Snapshot::empty()],
        next: 1,
        turns: 0,
        pace: Pace::default(),
        resumes,
        unknown: HashSet::new(),
    };
    eprintln!("killing {kills} times with seed {seed}");
    let start = Instant::now();
    let mut unchecked = 0;
    for kill in 1..=kills {
        let outcome = trial.kill_one(dir.path());
        unchecked += 1;
        let checks = unchecked == MAX_UNCHECKED || kill == kills || trial.random.u8(..3) > 0;
        let outcome = if outcome.is_ok() && checks {
            unchecked = 0;
            trial.check(dir.path()).await
        } else {
            outcome
        };
        if let Err(error) = outcome {
            let kept = dir.keep();
            let message = format!("kill {kill} of seed {seed}; the files are in {}", kept.display());
            return Err(Error::msg(message).caused_by(error.into_std()));
        }
        if kill % 1000 == 0 {
            eprintln!("{kill} kills, {} turns, {:.0?}", trial.turns, start.elapsed());
        }
    }
    let unknown = match trial.unknown.len() {
        0 => String::new(),
        calls => format!("{calls} calls with an unknown outcome, "),
    };
    println!(
        "{kills} kills, {} acknowledged turns, {unknown}nothing lost, nothing twice, {:.0?}",
        trial.turns,
        start.elapsed()
    );
    Ok(())
}

struct Trial {
    random: fastrand::Rng,
    /// Every content that may be stored now.
    possible: Vec<Snapshot>,
    /// The number of the next turn. No number is used twice, even if the kill came before the turn.
    next: u64,
    /// How many turns were acknowledged.
    turns: u64,
    pace: Pace,
    /// Whether a turn that was interrupted goes on.
    resumes: bool,
    /// The calls that were interrupted after they had started, so that they did not run again.
    unknown: HashSet<String>,
}

/// How long children take, so that kills are spread over everything they do.
#[derive(Default)]
struct Pace {
    /// From the start of a child to the end of its first turn.
    first: Duration,
    /// One turn.
    turn: Duration,
}

impl Trial {
    /// Starts a child, kills it at a random moment, and updates the possible contents by what it acknowledged.
    fn kill_one(&mut self, dir: &Path) -> Result<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(if self.resumes { "resuming-child" } else { "child" })
            .args([dir, Path::new(&self.next.to_string())])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let acknowledged = self.kill_at_random(&mut child)?;
        let status = child.wait()?;
        if status.signal() != Some(SIGKILL) {
            return Err(Error::msg(format!("a child ended by itself: {status}")));
        }
        for turn in acknowledged.lines() {
            if turn.parse() != Ok(self.next) {
                return Err(Error::msg(format!("turn {} was expected, not `{turn}`", self.next)));
            }
            self.possible = self.possible.iter().map(|snapshot| snapshot.after(self.next)).collect();
            self.next += 1;
            self.turns += 1;
        }
        if !self.resumes {
            self.possible = distinct(self.possible.iter().flat_map(|snapshot| snapshot.after_a_kill_in(self.next)));
            self.next += 1;
        }
        Ok(())
    }

    /// Kills the child after a random number of acknowledged turns and a random delay. Returns what it acknowledged.
    fn kill_at_random(&mut self, child: &mut Child) -> Result<String> {
        let output = child.stdout.take().ok_or_else(|| Error::msg("the child has no output"))?;
        let mut output = BufReader::new(output);
        // One in four kills comes while the child starts, opens the instance and recovers it.
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

    /// Opens the instance, as the next process would, and compares it with the possible contents.
    async fn check(&mut self, dir: &Path) -> Result<()> {
        let instance = agent(dir).await?.instance(KEY).await?;
        if self.resumes {
            // Also if it was committed, and the child was killed before it could say so.
            instance.run(event(self.next)).await?;
            self.possible = self.possible.iter().map(|snapshot| snapshot.after(self.next)).collect();
            self.next += 1;
        } else {
            instance.abandon().await?;
        }
        let lines: Vec<_> = instance.messages().await?.iter().map(|message| line(message)).collect();
        instance.close().await?;
        let mut found = Snapshot { progress: progress(dir, &lines).await?, lines };
        check_ledger(&dir.join("ledger"), &found.lines)?;
        if self.resumes {
            self.unknown.extend(found.forgive_unknown());
        }
        if !self.possible.contains(&found) {
            return Err(Error::msg(format!(
                "{found:#?} is none of {} possible contents, such as {:#?}",
                self.possible.len(),
                self.possible[0]
            )));
        }
        self.possible = vec![found];
        Ok(())
    }
}

/// Returns the stored state of the extension. Fails unless the stored messages are `lines`.
async fn progress(dir: &Path, lines: &[String]) -> Result<Progress> {
    let id = InstanceId { agent: AgentName::new(AGENT)?, key: InstanceKey::new(KEY)? };
    let Opened { base, interrupted, state, .. } = FileStore::open(dir.join("store"))?.open(&id).await?;
    let stored: Vec<_> = base.iter().map(|message| line(message)).collect();
    if interrupted.is_some() || stored != lines {
        return Err(Error::msg(format!("the instance had {lines:#?}, stored are {stored:#?}, and {interrupted:?}")));
    }
    let value = state.get(&ExtensionName::new("churn")?).cloned().unwrap_or_default();
    Ok(Option::<Progress>::deserialize(value)?.unwrap_or_default())
}
