//! Time and memory of whole programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The time and the memory that one run of a program took.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// From its start to its end.
    pub time: Duration,
    /// Of the processors.
    pub processors: Duration,
    /// The peak, in kB.
    pub memory: u64,
}

impl Sample {
    /// More than any run takes.
    pub const MOST: Self = Self { time: Duration::MAX, processors: Duration::MAX, memory: u64::MAX };

    /// Runs `program` by the program `sample`.
    ///
    /// # Panics
    /// When it fails.
    pub fn of<'a>(sample: &str, program: &OsStr, args: impl IntoIterator<Item = &'a OsStr>) -> Self {
        let output = Command::new(sample).arg(program).args(args).output();
        let output = output.expect("the sample runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let numbers = String::from_utf8(output.stdout).expect("numbers");
        let numbers: Vec<u64> = numbers.split_whitespace().map(|it| it.parse().expect("a number")).collect();
        let [time, processors, memory] = numbers.try_into().expect("three numbers");
        Self { time: Duration::from_micros(time), processors: Duration::from_micros(processors), memory }
    }

    /// Returns the smaller of the two, field by field.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self {
            time: self.time.min(other.time),
            processors: self.processors.min(other.processors),
            memory: self.memory.min(other.memory),
        }
    }
}

/// Builds the command as its users build it, below the directory of a target, and returns its path. If
/// `GOONDAN_BENCH_COMMAND` is set, it returns that path: another version can be compared.
///
/// # Panics
/// When it cannot be built.
pub fn command(target: &Path) -> PathBuf {
    if let Some(path) = std::env::var_os("GOONDAN_BENCH_COMMAND") {
        return path.into();
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--package", "goondan-cli", "--target-dir"]).arg(target);
    assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs").success());
    target.join("release/goondan")
}

/// Returns megabytes.
pub fn mega(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1024.0
}
