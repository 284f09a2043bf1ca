//! The tests of the copy: which there are, which are marked as the proof of a row, and whether one falls.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Result;

/// The environment variable that turns a break on: the id of its row.
pub(crate) const SWITCH: &str = "GOONDAN_MUTATION";

/// The longest time of a test while nothing is broken.
pub(crate) const LONGEST: Duration = Duration::from_secs(600);

/// The marks `#[covers("…")]`: the names of test functions by the id of the row, each with its file.
pub(crate) struct Marks(BTreeMap<String, Vec<(PathBuf, String)>>);

impl Marks {
    /// Reads the marks of all Rust files below the current directory.
    pub(crate) fn read() -> Result<Self> {
        let mut marks = Self(BTreeMap::new());
        marks.collect(Path::new("."))?;
        Ok(marks)
    }

    fn collect(&mut self, directory: &Path) -> Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let skipped = ["target", ".git", "node_modules"].iter().any(|name| path.ends_with(name));
            if path.is_dir() && !skipped {
                self.collect(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                self.collect_from(&path, &fs::read_to_string(&path)?);
            }
        }
        Ok(())
    }

    fn collect_from(&mut self, path: &Path, text: &str) {
        const MARK: &str = "#[covers(";
        // An attribute starts its line.
        let starts_line = |at: usize| text[..at].trim_end_matches(' ').ends_with('\n');
        for (at, _) in text.match_indices(MARK).filter(|(at, _)| starts_line(*at)) {
            let rest = &text[at + MARK.len()..];
            let (Some((ids, _)), Some((_, function))) = (rest.split_once(")]"), rest.split_once("fn ")) else {
                continue;
            };
            let name = function.split(['(', '<']).next().unwrap_or_default();
            for id in ids.split('"').skip(1).step_by(2) {
                self.0.entry(id.to_owned()).or_default().push((path.to_owned(), name.to_owned()));
            }
        }
    }
}

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
        let marked = marks.0.get(id).map(Vec::as_slice).unwrap_or_default();
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
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(passes(&mut child, limit)?.then(|| start.elapsed()))
    }
}

/// Returns the name of a package from its id, such as `path+file:///src/kit/lock#goondan-lock@0.1.0`, or without the name
/// if that is the directory's.
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
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        sleep(Duration::from_millis(5));
    }
}
