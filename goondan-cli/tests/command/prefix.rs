//! CACHE-01: 100 steps of the examples with long conversations, whose requests begin as those before.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use goondan_covers::covers;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{git, goondan, init, stdout};

const STEPS: usize = 100;
/// The most requests of them that may begin anew.
const MOST_CUTS: usize = 4;

/// A copy of an example with another script.
struct Case {
    root: TempDir,
}

impl Case {
    fn new(example: &str, script: &Value) -> Self {
        let case = Self { root: TempDir::new().unwrap() };
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(example);
        let copied = Command::new("cp").arg("-r").arg(example).arg(case.bundle()).status().unwrap();
        assert!(copied.success());
        // YAML has all of JSON.
        fs::write(case.bundle().join("script.yaml"), script.to_string()).unwrap();
        case
    }

    fn bundle(&self) -> PathBuf {
        self.root.path().join("bundle")
    }

    fn goondan(&self, arguments: &[&str], directory: &Path) -> Output {
        self.goondan_with(arguments, directory, None)
    }

    fn goondan_with(&self, arguments: &[&str], directory: &Path, input: Option<PathBuf>) -> Output {
        let mut command = goondan();
        command.args(arguments).arg("--state-root").arg(self.root.path().join("state"));
        if let Some(input) = input {
            command.stdin(fs::File::open(input).unwrap());
        }
        let output = command.current_dir(directory).env("PWD", directory).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }

    /// Checks what the requests have kept, and lists those that began anew.
    fn check(&self) {
        let list = self.goondan(&["instance", "list", "--json"], self.root.path());
        let instance = serde_json::from_str::<Value>(stdout(&list)).unwrap()[0].take();
        let name = format!("{}:{}", instance["agent"].as_str().unwrap(), instance["key"].as_str().unwrap());
        let shown = self.goondan(&["instance", "show", &name, "--json"], self.root.path());
        let end: Value = serde_json::from_str(stdout(&shown).lines().last().unwrap()).unwrap();
        let all = &end["instance"]["keptPrefix"];
        let (kept, of) = (all["kept"].as_u64().unwrap(), all["of"].as_u64().unwrap());
        let broken = all["broken"].as_array().unwrap();
        println!("{STEPS} steps kept {kept} of {of} characters");
        broken.iter().for_each(|broken| println!("{broken}"));
        assert!(kept * 100 >= of * 95, "{kept} of {of}: {broken:#?}");
        let cuts = broken.iter().filter(|broken| broken["kept"].as_u64() < broken["of"].as_u64().map(|of| of / 2));
        assert!((1..=MOST_CUTS).contains(&cuts.count()), "{broken:#?}");
        assert!(broken.iter().all(|broken| broken["broken"]["extensionName"].is_string()), "{broken:#?}");
    }
}

#[test]
#[covers("CACHE-01")]
fn a_hundred_steps_of_the_coder_keep_the_beginnings_of_their_requests() {
    let mut script = vec![json!({ "when": "^<conversation>", "say": "A file was read many times.", "repeat": true })];
    script.push(json!({ "call": { "tool": "changesets__open", "args": { "reason": "to read" } } }));
    let read = json!({ "command": "printf '%06000d' 0" });
    script.extend((3..STEPS).map(|_| json!({ "call": { "tool": "bash__exec", "args": read } })));
    script.extend([json!({ "call": { "tool": "changesets__list" } }), json!({ "say": "Read." })]);
    let case = Case::new("coder", &json!(script));
    // Nobody is asked about a hundred commands.
    let manifest = case.bundle().join("goondan.yaml");
    let bundle = fs::read_to_string(&manifest).unwrap();
    assert!(bundle.contains("      - { effect: once }\n"), "{bundle}");
    fs::write(&manifest, bundle.replace("      - { effect: once }\n", "")).unwrap();
    let sample = case.bundle().join("sample");
    init(&sample);
    assert_eq!(git(&sample, &["status", "--porcelain"]), "");
    let bundle = case.bundle();
    case.goondan(&["run", "--trust", bundle.to_str().unwrap(), "--input", "read"], &fs::canonicalize(sample).unwrap());
    case.check();
}

#[cfg(feature = "mcp")]
#[test]
#[covers("CACHE-01")]
fn a_hundred_steps_of_the_workbench_keep_the_beginnings_of_their_requests() {
    let call = |tool: &str, args: Value| json!({ "call": { "tool": tool, "args": args } });
    let mut script = vec![
        call("tool-search__search", json!({ "query": "log" })),
        call("skills__open", json!({ "name": "report" })),
        call("desk__log", json!({})),
        json!({ "say": "That is the log." }),
    ];
    while script.len() < STEPS {
        script.extend((0..3).map(|_| call("desk__log", json!({}))));
        script.push(json!({ "say": "That is the log again." }));
    }
    let case = Case::new("workbench", &json!(script));
    let inputs: String = (0..STEPS / 4).map(|turn| format!("{turn}: show me the log\n")).collect();
    fs::write(case.root.path().join("inputs"), inputs).unwrap();
    // All in one process, which knows the request before.
    case.goondan_with(&["run", "--trust", "."], &case.bundle(), Some(case.root.path().join("inputs")));
    case.check();
}

#[cfg(feature = "models")]
#[test]
#[covers("CACHE-01")]
fn a_window_before_a_model_with_a_cheaper_cache_is_a_hint() {
    let bundle = TempDir::new().unwrap();
    let check = |entry: &str, prices: &str| {
        let text = format!(
            "apiVersion: goondan.ai/v1
kind: Model
metadata: {{ name: main }}
spec: {{ provider: anthropic, model: m, apiKey: {{ valueFrom: {{ env: KEY }} }}, prices: {prices} }}
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: short }}
spec: {{ entry: \"linked:{entry}\" }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: main }}
spec: {{ model: Model/main, extensions: [{{ ref: Extension/short }}] }}
"
        );
        fs::write(bundle.path().join("goondan.yaml"), text).unwrap();
        let output = goondan().arg("check").arg(bundle.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        stdout(&output).contains("changes the beginnings of requests, which the cache of the model `main` keeps")
    };
    const CHEAPER: &str = "{ input: 3, output: 15, cachedInput: 0.3 }";
    assert!(check("message-window", CHEAPER) && check("tool-search", CHEAPER));
    assert!(!check("message-compaction", CHEAPER) && !check("message-window", "{ input: 3, output: 15 }"));
}
