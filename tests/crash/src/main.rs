//! Kills processes that run turns, and compares what they leave with what was computed without the runtime (CRASH-01).
//!
//! `cargo run --release -p goondan-crash -- 10000` kills ten thousand times. A second number is the seed of an earlier
//! run: it repeats the random choices, but not the timing of the processes. With `-- resume 10000`, each process runs
//! the event again whose turn the one before did not finish, and every turn is there once. With `-- steer 200`, an
//! input joins each turn, and with `-- decide 1000` calls wait for decisions. `-- race 100000` opens one instance a hundred thousand times in several processes while others
//! delete and read it, and counts how often it is open twice. The parent uses the other subcommands to start the
//! children.

mod answering;
mod changing;
mod child;
mod compacting;
mod deciding;
mod expected;
mod kill;
mod owner;
mod plan;
mod projecting;
mod race;
mod sharing;
mod steering;
mod stuck;

use std::path::Path;
use std::process::ExitCode;

use goondan::{Error, Result};

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let outcome = match args[..] {
        [name @ ("child" | "resuming-child"), dir, start] => {
            let same_events = name == "resuming-child";
            number(start).and_then(|start| block_on(child::run(Path::new(dir), start, same_events)))
        }
        ["opener", dir, openings] => {
            number(openings).and_then(|openings| block_on(race::open(Path::new(dir), openings)))
        }
        ["deleter", dir] => race::delete(Path::new(dir)),
        ["reader", dir] => race::read(Path::new(dir)),
        ["race", openings] => number(openings).and_then(race::run),
        ["answering", dir, input] => block_on(answering::run(Path::new(dir), input)),
        ["changing", dir, tool, args] => block_on(changing::run(Path::new(dir), tool, args)),
        ["compacting", dir, input] => block_on(compacting::run(Path::new(dir), input)),
        ["compacting", dir, seed, "cancelled", turns] => number(seed)
            .and_then(|seed| Ok((seed, number(turns)?)))
            .and_then(|(seed, turns)| block_on(compacting::play(Path::new(dir), seed, 0..turns, true))),
        ["compacting", dir, seed, "killed", turn] => number(seed)
            .and_then(|seed| Ok((seed, number(turn)?)))
            .and_then(|(seed, turn)| block_on(compacting::play(Path::new(dir), seed, turn..turn + 1, false))),
        ["owner", alive] => block_on(owner::run(Path::new(alive))),
        ["projecting", dir, input] => block_on(projecting::run(Path::new(dir), input)),
        ["sharing", dir, writer] => sharing::run(Path::new(dir), writer),
        ["steering-child", dir, start] => {
            number(start).and_then(|start| block_on(steering::child(Path::new(dir), start)))
        }
        ["deciding-child", dir, start] => {
            number(start).and_then(|start| block_on(deciding::child(Path::new(dir), start)))
        }
        ["decide", kills] => number(kills).and_then(|kills| block_on(deciding::run(kills))),
        ["steer", kills] => number(kills).and_then(|kills| block_on(steering::run(kills))),
        ["stuck", dir, input] => block_on(stuck::run(Path::new(dir), input)),
        ["resume", kills] => number(kills).and_then(|kills| block_on(kill::run(kills, fastrand::u64(..), true))),
        ["resume", kills, seed] => number(kills)
            .and_then(|kills| Ok((kills, number(seed)?)))
            .and_then(|(kills, seed)| block_on(kill::run(kills, seed, true))),
        [kills] => number(kills).and_then(|kills| block_on(kill::run(kills, fastrand::u64(..), false))),
        [kills, seed] => number(kills)
            .and_then(|kills| Ok((kills, number(seed)?)))
            .and_then(|(kills, seed)| block_on(kill::run(kills, seed, false))),
        _ => Err(Error::msg(
            "usage: goondan-crash [resume] KILLS [SEED], goondan-crash steer KILLS, goondan-crash decide KILLS, or \
             goondan-crash race OPENINGS",
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.report());
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::msg(format!("`{text}` is not a number")))
}

fn block_on(work: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
