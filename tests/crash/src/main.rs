//! Kills processes that run turns, and compares what is left with an account of its own (CRASH-01).
//!
//! `cargo run --release -p goondan-crash -- 10000` kills ten thousand times; a second number repeats the choices of an
//! earlier run, as far as the timing of processes can be repeated. The other ways to call it are those of the children.

mod account;
mod child;
mod kill;
mod plan;
mod stuck;

use std::path::Path;
use std::process::ExitCode;

use goondan::{Error, Result};

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let outcome = match args[..] {
        ["child", dir, start] => number(start).and_then(|start| on_a_runtime(child::run(Path::new(dir), start))),
        ["stuck", dir, input] => on_a_runtime(stuck::run(Path::new(dir), input)),
        [kills] => number(kills).and_then(|kills| on_a_runtime(kill::run(kills, fastrand::u64(..)))),
        [kills, seed] => number(kills)
            .and_then(|kills| Ok((kills, number(seed)?)))
            .and_then(|(kills, seed)| on_a_runtime(kill::run(kills, seed))),
        _ => Err(Error::msg("usage: goondan-crash KILLS [SEED]")),
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

fn on_a_runtime(work: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(work)
}
