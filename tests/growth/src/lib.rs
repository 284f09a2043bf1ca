//! Measures what a process grows by when it gets ten and a hundred times as much as a limit allows.
//!
//! A test calls [`check`], which runs it again in processes of their own: with too much, and without it, which is the
//! yardstick. The system keeps the peak of each.
#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test fails by panicking, and prints")]

use std::env;
use std::fs;
use std::process::{Command, Stdio};

/// What a process may grow by whatever the limit is.
const ROOM: u64 = 16 << 20;

/// How much two runs of the same process differ.
const NOISE: u64 = 4 << 20;

/// The environment variable with the case of a process that measures.
const CASE: &str = "GOONDAN_TEST_GROWTH";

/// One run of a test.
#[derive(Clone, Debug)]
pub struct Case {
    /// How many times as much as the limit there is.
    pub times: usize,
    /// Whether what is too large is passed on. Otherwise it is made, if the process makes it, and dropped.
    pub passed_on: bool,
    /// What the test's first process has prepared for the others, such as the address of a server.
    pub prepared: String,
}

impl Case {
    /// Returns what this process measures, if [`check`] started it.
    fn of_this_process() -> Option<Self> {
        let text = env::var(CASE).ok()?;
        let mut fields = text.splitn(3, ' ');
        let mut next = || fields.next().unwrap();
        Some(Self { times: next().parse().unwrap(), passed_on: next().parse().unwrap(), prepared: next().to_owned() })
    }

    /// Forgets the peak of what came before.
    ///
    /// # Panics
    /// If the system has no such peak.
    pub fn begin(&self) {
        fs::write("/proc/self/clear_refs", "5").unwrap();
    }

    /// Runs the test `name` alone in a process that measures this case, and returns its peak in bytes.
    fn peak(&self, name: &str) -> u64 {
        let mut process = Command::new(env::current_exe().unwrap());
        process.args(["--exact", "--nocapture", "--test-threads", "1", name]).stdin(Stdio::null());
        process.env(CASE, format!("{} {} {}", self.times, self.passed_on, self.prepared));
        // What is freed goes back to the system, so that it hides nothing that comes later.
        process.envs([("MALLOC_MMAP_THRESHOLD_", "65536"), ("MALLOC_TRIM_THRESHOLD_", "65536")]);
        let output = process.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{self:?}\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let peak = text.split_once("peak: ").and_then(|(_, rest)| rest.split_whitespace().next());
        peak.unwrap_or_else(|| panic!("{name} did not run: {text}")).parse().unwrap()
    }
}

/// Returns the peak of this process in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Returns what a process may grow by for a limit of bytes.
pub fn of_bytes(limit: usize) -> u64 {
    5 * limit as u64 + ROOM
}

/// What a process may grow by for YAML and schemas.
pub const OF_DOCUMENTS: u64 = 64 << 20;

/// Checks that a process grows by at most `allowed` if there is ten times as much as a limit allows, and by no more if
/// there is a hundred times as much. `test` is the name of the calling test, such as `results::a_text::linked`.
///
/// `prepare` runs once, in this process; `run` in each of the others.
///
/// # Panics
/// When it grows by more.
pub async fn check(test: &str, allowed: u64, prepare: impl FnOnce() -> String, run: impl AsyncFn(&Case)) {
    if let Some(case) = Case::of_this_process() {
        run(&case).await;
        println!("peak: {} bytes", peak());
        std::process::exit(0);
    }
    let prepared = prepare();
    let growth = |times| {
        let case = |passed_on| Case { times, passed_on, prepared: prepared.clone() };
        case(true).peak(test).saturating_sub(case(false).peak(test))
    };
    let [ten, hundred] = [10, 100].map(growth);
    println!("{test}: {ten} bytes for ten times the limit, {hundred} for a hundred times; {allowed} are allowed");
    assert!(ten <= allowed, "{test}: {ten} bytes for ten times the limit, and {allowed} are allowed");
    assert!(hundred <= ten + NOISE, "{test}: {ten} bytes for ten times the limit, {hundred} for a hundred times");
}
