//! The tests of the copy: which there are, which are marked as the proof of a row, and whether one falls.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use goondan_mutations::Result;
use goondan_mutations::marks::Marks;
use goondan_mutations::table::SWITCH;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;

/// The longest time of a test while nothing is broken.
pub(crate) const LONGEST: Duration = Duration::from_secs(600);

/// A test of a binary.
pub(crate) struct Test {
    /// Its path within the binary, such as `next::without_next::linked`.
    pub(crate) name: String,
    binary: PathBuf,
    /// The directory of its package, in which it runs.
    directory: PathBuf,
    package: String,
}

/// All tests of the copy.
pub(crate) struct Tests(Vec<Test>);

impl Tests {
    /// Builds the tests of the workspace in `tree`, and lists them.
    pub(crate) fn build(tree: &Path) -> Result<Self> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["test", "--workspace", "--locked", "--no-run", "--message-format=json-render-diagnostics"]);
        let built = cargo.current_dir(tree).env_remove("CARGO_TARGET_DIR").stderr(Stdio::inherit()).output()?;
        if !built.status.success() {
            return Err("the copy with the breaks does not build".into());
        }
        let mut tests = Vec::new();
        for line in String::from_utf8(built.stdout)?.lines() {
            let message: Value = serde_json::from_str(line)?;
            let (Some(binary), Some(manifest)) = (message["executable"].as_str(), message["manifest_path"].as_str())
            else {
                continue;
            };
            if message["profile"]["test"] != true {
                continue;
            }
            let directory = Path::new(manifest).parent().unwrap_or(tree).to_owned();
            let package = name_of(message["package_id"].as_str().unwrap_or_default()).to_owned();
            let listed = Command::new(binary).current_dir(&directory).args(["--list", "--format=terse"]).output()?;
            let names = String::from_utf8(listed.stdout)?;
            for name in names.lines().filter_map(|line| line.strip_suffix(": test")) {
                let (directory, package) = (directory.clone(), package.clone());
                tests.push(Test { name: name.to_owned(), binary: binary.into(), directory, package });
            }
        }
        Ok(Self(tests))
    }

    /// Returns the tests that are marked as the proof of the row `id`, in each linkage.
    pub(crate) fn marked(&self, marks: &Marks, id: &str) -> Vec<&Test> {
        let marked = marks.of(id);
        let is = |test: &&Test| {
            marked.iter().any(|(file, function)| {
                let here = file.canonicalize().is_ok_and(|file| is_below(&file, &test.directory));
                here && test.name.split("::").any(|part| part == function)
            })
        };
        self.0.iter().filter(is).collect()
    }

    /// Runs a test, with the code of a row broken. Returns how long it took if it passed within `limit`.
    pub(crate) fn run(&self, test: &Test, broken: Option<&str>, limit: Duration) -> Result<Option<Duration>> {
        let mut command = Command::new(&test.binary);
        command.args(["--exact", &test.name, "--quiet"]).current_dir(&test.directory);
        // As cargo sets them.
        command.env("CARGO_MANIFEST_DIR", &test.directory).env("CARGO_PKG_NAME", &test.package);
        command.env_remove(SWITCH).envs(broken.map(|id| (SWITCH, id)));
        let start = Instant::now();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn()?;
        Ok(passes(&mut child, limit)?.then(|| start.elapsed()))
    }
}

/// Returns the name of a package from its id, such as `path+file:///src/kit/lock#goondan-lock@0.1.0`, or without the
/// name if that is the directory's.
fn name_of(id: &str) -> &str {
    let (path, version) = id.split_once('#').unwrap_or((id, ""));
    version.split_once('@').map_or_else(|| path.rsplit('/').next().unwrap_or_default(), |(name, _)| name)
}

/// Returns whether `file` of this workspace belongs to `package` of the copy, and to none inside of it.
fn is_below(file: &Path, package: &Path) -> bool {
    let Some(root) = std::env::current_dir().ok() else { return false };
    let (Ok(file), Ok(package)) = (file.strip_prefix(&root), package.strip_prefix(root.join("target/mutations")))
    else {
        return false;
    };
    let nearest = file.ancestors().skip(1).find(|directory| directory.join("Cargo.toml").is_file());
    nearest.is_none_or(|nearest| nearest == package)
}

fn passes(child: &mut Child, limit: Duration) -> Result<bool> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if start.elapsed() > limit {
            // With the processes that the test has started.
            killpg(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGKILL)?;
            child.wait()?;
            return Ok(false);
        }
        sleep(Duration::from_millis(5));
    }
}
