//! Bundles on the command line: which are rejected and how, and what valid ones do.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use goondan_covers::covers;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{self, piped, stderr, stdout};

const HEAD: &str = "apiVersion: goondan.ai/v1\nkind: ";

fn goondan(bundle: &Path, command: &str, arguments: &[&str]) -> Command {
    let mut goondan = support::goondan();
    goondan.arg(command).arg(bundle).args(arguments).stdin(Stdio::null());
    goondan
}

fn run(bundle: &Path, arguments: &[&str]) -> Output {
    goondan(bundle, "run", arguments).arg("--state-root").arg(bundle.join(".state")).output().unwrap()
}

fn bundle(files: &[(&str, String)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (file, content) in files {
        fs::write(dir.path().join(file), content).unwrap();
    }
    dir
}

#[test]
#[covers("RULE-02", "SCHEMA-01")]
fn six_mistakes_in_five_documents_are_six_lines() {
    let dir = bundle(&[
        (
            "goondan.yaml",
            [
                "Agent\nmetadata: { name: two }\nspec:\n  model: Model/main\n  sytem: x\n  policy: { maxStepsPerTurn: 0 }\n",
                "Model\nmetadata: { name: main }\nspec: { provider: magic, script: ./script.yaml }\n",
                "Agent\nmetadata: { name: One }\nspec: { model: Model/main }\n",
                "Agent\nmetadata: { name: three }\nspec: { model: Model/mian }\n",
            ]
            .map(|document| format!("{HEAD}{document}"))
            .join("---\n"),
        ),
        (
            "window.yaml",
            format!("{HEAD}Extension\nmetadata: {{ name: w }}\nspec:\n  entry: \"linked:message-window\"\n  config:\n    maxMessages: 0\n"),
        ),
        ("script.yaml", "- say: hi\n".to_owned()),
    ]);
    let output = goondan(dir.path(), "check", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let root = format!("{}/", dir.path().display());
    let lines: Vec<_> = stdout(&output).lines().filter_map(|line| line.strip_prefix(&root)).collect();
    let errors: Vec<_> = lines.iter().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        errors,
        [
            "goondan.yaml:6:3 error[E_CONFIG_SCHEMA_INVALID]",
            "goondan.yaml:7:30 error[E_CONFIG_SCHEMA_INVALID]",
            "goondan.yaml:12:19 error[E_CONFIG_SCHEMA_INVALID]",
            "goondan.yaml:16:19 error[E_CONFIG_INVALID_NAME]",
            "goondan.yaml:22:16 error[E_CONFIG_REF_NOT_FOUND]",
            "window.yaml:7:18 error[E_EXT_CONFIG]",
        ],
        "{}",
        stdout(&output)
    );
    assert!(stdout(&output).ends_with("6 faults\n"));
    // The commands that run the bundle print the same.
    for command in ["run", "order"] {
        let other = goondan(dir.path(), command, &[]).output().unwrap();
        assert_eq!(other.status.code(), Some(2), "{command}");
        assert_eq!((stdout(&other), stderr(&other)), ("", stdout(&output)), "{command}");
    }
    let output = goondan(dir.path(), "check", &["--json"]).output().unwrap();
    for command in ["run", "order"] {
        let other = goondan(dir.path(), command, &["--json"]).output().unwrap();
        assert_eq!(other.status.code(), Some(2), "{command}");
        assert_eq!((stdout(&other), stderr(&other)), (stdout(&output), ""), "{command}");
    }
}

#[test]
fn a_file_that_is_not_a_bundle_is_an_error_that_says_why() {
    let level = |i: usize| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(", "));
    let bomb = format!("a0: &a0 [x]\n{}", (1..30).map(level).collect::<String>());
    let deep = format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (content, why) in [
        (b"".to_vec(), "is empty"),
        (b"a: b\n".repeat(400_000), "larger than 1048576 bytes"),
        (b"\x7fELF\x02\x01\0\0\xff".to_vec(), "binary"),
        (b"a: 1\nb: \xff\n".to_vec(), "not UTF-8"),
        (deep.into_bytes(), "nested more than 64 levels"),
        (bomb.into_bytes(), "aliases repeat too much"),
    ] {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("goondan.yaml"), content).unwrap();
        for output in [goondan(dir.path(), "check", &[]).output().unwrap(), run(dir.path(), &["--input", "x"])] {
            assert_eq!(output.status.code(), Some(2), "{why}");
            let printed = [stdout(&output), stderr(&output)].concat();
            assert!(printed.contains("goondan.yaml") && printed.contains(why), "{why}: {printed}");
        }
    }
    let output = goondan(Path::new("no/such/directory"), "check", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("no such file or directory"));
}

#[test]
#[covers("LOAD-07")]
fn fields_and_versions_that_do_not_exist_are_answered_with_those_that_do() {
    let document = "Extension\nmetadata: { name: w }\nspec: { runtime: node, entry: \"linked:message-window\" }\n";
    for (document, forms) in [
        (format!("{HEAD}{document}"), ["unknown field `runtime` in `spec`", "expected `entry`"]),
        (
            format!("apiVersion: goondan.ai/v0\nkind: {document}"),
            ["unsupported version `goondan.ai/v0`", "apiVersion: goondan.ai/v1"],
        ),
    ] {
        let dir = bundle(&[("goondan.yaml", document)]);
        let output = goondan(dir.path(), "check", &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(forms.iter().all(|form| stdout(&output).contains(form)), "{}", stdout(&output));
    }
}

/// A bundle with two agents, of which `brief` has its own policy and window. `more` is added to the spec of the swarm.
fn two_agents(more: &str) -> TempDir {
    let script = "- { call: { tool: no__tool }, when: \"call|E_TOOL\", repeat: true }\n- { say: fine, repeat: true }\n";
    let documents = [
        "Model\nmetadata: { name: main }\nspec: { provider: scripted, script: ./script.yaml, record: ./requests.jsonl }\n",
        "Extension\nmetadata: { name: window }\nspec: { entry: \"linked:message-window\", config: { maxMessages: 7 } }\n",
        "Agent\nmetadata: { name: long }\nspec: { model: Model/main, extensions: [ { ref: Extension/window } ] }\n",
        "Agent\nmetadata: { name: brief }\nspec: { model: Model/main, policy: { maxStepsPerTurn: 4 }, extensions: [ { ref: Extension/window, config: { maxMessages: 1 } } ] }\n",
        &format!(
            "Swarm\nmetadata: {{ name: team }}\nspec: {{ agents: [ {{ ref: Agent/long }}, {{ ref: Agent/brief }} ], entryAgent: Agent/long{more} }}\n"
        ),
    ];
    let documents = documents.map(|document| format!("{HEAD}{document}"));
    bundle(&[("goondan.yaml", documents.join("---\n")), ("script.yaml", script.to_owned())])
}

fn requests(dir: &Path) -> Vec<usize> {
    let file = BufReader::new(File::open(dir.join("requests.jsonl")).unwrap());
    let request = |line: std::io::Result<String>| serde_json::from_str::<Value>(&line.unwrap()).unwrap();
    file.lines().map(|line| request(line)["messages"].as_array().unwrap().len()).collect()
}

#[test]
fn the_config_of_an_agent_overrides_that_of_the_extension() {
    let dir = two_agents("");
    for _ in 0..3 {
        assert!(run(dir.path(), &["--input", "one"]).status.success());
    }
    assert_eq!(requests(dir.path()), [1, 3, 5], "the entry agent, whose window has 7 messages");
    fs::remove_file(dir.path().join("requests.jsonl")).unwrap();
    for _ in 0..3 {
        assert!(run(dir.path(), &["--agent", "brief", "--input", "one"]).status.success());
    }
    assert_eq!(requests(dir.path()), [1, 1, 1], "the other one, whose window has 1");
}

#[test]
fn the_policy_of_the_swarm_is_the_default_of_its_agents() {
    let dir = two_agents(", policy: { maxStepsPerTurn: 2 }");
    for (agent, steps) in [("long", 2), ("brief", 4)] {
        let output = run(dir.path(), &["--agent", agent, "--json", "--input", "call"]);
        let turn: Value = serde_json::from_str(stdout(&output)).unwrap();
        assert_eq!((&turn["finishReason"], &turn["steps"]), (&"max_steps".into(), &steps.into()), "{agent}: {turn}");
    }
}

#[test]
fn two_instances_do_not_wait_for_each_other() {
    let dir = two_agents("");
    let open = |key| {
        let mut command = goondan(dir.path(), "run", &["--instance", key]);
        piped(command.arg("--state-root").arg(dir.path().join(".state")))
    };
    let (mut one, mut two) = (open("one"), open("two"));
    let mut answers = [&mut one, &mut two].map(|child| BufReader::new(child.stdout.take().unwrap()));
    // Each conversation is open while the other one answers.
    for turn in 0..3 {
        for (child, answer) in [&mut one, &mut two].into_iter().zip(&mut answers) {
            writeln!(child.stdin.as_mut().unwrap(), "event {turn}").unwrap();
            let mut line = String::new();
            answer.read_line(&mut line).unwrap();
            assert_eq!(line, "fine\n");
        }
    }
    // An instance can be open in one process only.
    let third = run(dir.path(), &["--instance", "one", "--input", "x"]);
    assert!(third.status.code() == Some(1) && stderr(&third).contains("E_STORE_LOCKED"), "{third:?}");
    assert!(stderr(&third).contains(&format!("process {}", one.id())), "{third:?}");
    for mut child in [one, two] {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}
