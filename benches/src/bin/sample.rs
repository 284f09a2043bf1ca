//! Runs the command line in its arguments and prints the wall time and the processor time, in microseconds, and the
//! peak memory in kilobytes.
//!
//! It is a program, because the peak of a process includes the memory that it had before `exec`: the parent of the
//! measured process must be small.

use std::env;
use std::io;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

fn main() -> io::Result<ExitCode> {
    let mut args = env::args_os().skip(1);
    let program = args.next().ok_or_else(|| io::Error::other("name a program"))?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    let status = command.status()?;
    let took = started.elapsed().as_micros();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let processors = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    println!("{took} {processors} {}", usage.max_rss());
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
