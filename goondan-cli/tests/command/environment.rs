//! What child processes learn of the environment of the command, and of its memory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use goondan_covers::covers;
use goondan_libraries::by_hand;
use nix::unistd::Uid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{RECORDED_MODEL, checkout, commit, git, goondan, init, printed, stderr};

/// A server that only writes its environment, and a bundle that reads `DATABASE` as a secret.
const BUNDLE: &str = "apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: bash }
spec: { entry: 'linked:bash', config: { cwd: repository BASH } }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: skills }
spec: { entry: 'linked:skills', config: { discovery: {} } }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: changesets }
spec:
  entry: 'linked:changesets'
  config:
    repository: repository
    setup: [sh, -c, 'cat /proc/self/environ > DIR/setup']
    check: [sh, -c, 'cat /proc/self/environ > DIR/check']
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: server }
spec:
  entry: 'linked:mcp'
  config:
    transport:
      type: stdio
      command: [sh, -c, 'cat /proc/self/environ > DIR/server']
      env: { DSN: { valueFrom: { env: DATABASE } } }
    required: false
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec:
  model: Model/main
  extensions: [ { ref: Extension/bash }, { ref: Extension/skills }, { ref: Extension/changesets }, SERVER ]
";

/// The variables that children should not get, of which each is withheld for another reason.
const SECRETS: [(&str, &str); 4] = [
    ("DATABASE", "postgres://me:planted-dsn@host"),
    ("GOONDAN_OAUTH_KEY", "planted-own"),
    ("OTHER_API_KEY", "planted-key"),
    ("Their_Password", "planted-password"),
];

/// A variable that they get.
const PLAIN: (&str, &str) = ("PLAIN", "anybody may see this");

/// A bundle in a directory with a repository, in which each child writes its environment to a file.
struct Fixture(TempDir);

impl Fixture {
    fn new(bash: &str, steps: &[(&str, Value)]) -> Self {
        let this = Self(TempDir::new().unwrap());
        let server = if cfg!(feature = "mcp") { "{ ref: Extension/server }" } else { "" };
        let bundle = BUNDLE.replace("DIR", &this.text("")).replace("BASH", bash).replace("SERVER", server);
        let bundle = if cfg!(feature = "mcp") { bundle } else { without_server(&bundle) };
        fs::write(this.path("goondan.yaml"), format!("{RECORDED_MODEL}{bundle}")).unwrap();
        let call = |(tool, args): &(&str, Value)| json!({ "call": { "tool": tool, "args": args } });
        let script: Vec<_> = steps.iter().map(call).chain([json!({ "say": "done" })]).collect();
        fs::write(this.path("script.yaml"), Value::from(script).to_string()).unwrap();
        for directory in ["bin", "repository", "skills/one"] {
            fs::create_dir_all(this.path(directory)).unwrap();
        }
        fs::write(this.path("skills/one/SKILL.md"), "---\nname: one\ndescription: The only one.\n---\n").unwrap();
        fs::write(this.path("repository/notes.txt"), "a\n").unwrap();
        init(&this.path("repository"));
        // The command starts git like this one, which starts the real one.
        let path = std::env::var("PATH").unwrap();
        let wrapper =
            format!("#!/bin/sh\ncat /proc/self/environ >> {}\nPATH={path:?} exec git \"$@\"\n", this.text("git"));
        fs::write(this.path("bin/git"), wrapper).unwrap();
        fs::set_permissions(this.path("bin/git"), fs::Permissions::from_mode(0o755)).unwrap();
        this
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        self.path(path).to_str().unwrap().trim_end_matches('/').to_owned()
    }

    /// Returns the command for one turn, without the rights of an administrator.
    fn command(&self) -> Command {
        let mut command = unprivileged();
        let path = format!("{}:{}", self.text("bin"), std::env::var("PATH").unwrap());
        command
            .args(["run", "--trust"])
            .arg(self.0.path())
            .args(["--input", "go", "--state-root"])
            .arg(self.path("state"));
        command.env("PATH", path).env(PLAIN.0, PLAIN.1).envs(SECRETS);
        command
    }

    fn run(&self) -> Output {
        let output = self.command().output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }

    /// Returns the environment that a child has written.
    #[track_caller]
    fn environment(&self, child: &str) -> String {
        fs::read_to_string(self.path(child)).unwrap_or_else(|error| panic!("{child}: {error}"))
    }

    /// Returns the results of the tool calls, as the model read them.
    fn results(&self) -> String {
        let requests = fs::read_to_string(self.path("requests.jsonl")).unwrap();
        requests.lines().last().unwrap().to_owned()
    }
}

/// Returns the command without the rights of an administrator.
fn unprivileged() -> Command {
    let goondan = goondan();
    if !Uid::effective().is_root() {
        return goondan;
    }
    let mut setpriv = Command::new("setpriv");
    setpriv.args(["--inh-caps=-all", "--bounding-set=-all"]).arg(goondan.get_program());
    setpriv.env_remove("RUST_LOG").env_remove("GOONDAN_CASSETTES").env_remove("GOONDAN_STATE_ROOT");
    setpriv
}

fn without_server(bundle: &str) -> String {
    bundle.split("---\n").filter(|document| !document.contains("linked:mcp")).collect::<Vec<_>>().join("---\n")
}

/// Returns all files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| !path.is_symlink());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn exec(command: &str) -> (&'static str, Value) {
    ("bash__exec", json!({ "command": command }))
}

#[test]
#[covers("ENV-01")]
fn no_kind_of_child_gets_a_key_that_was_not_meant_for_it() {
    let fixture = Fixture::new("", &[]);
    let write = |file: &str| format!("cat /proc/self/environ > {}", fixture.text(file));
    fs::write(fixture.path("script.sh"), write("script")).unwrap();
    let steps = [
        exec(&format!("env; {}", write("exec"))),
        ("bash__script", json!({ "path": fixture.text("script.sh") })),
        ("skills__run", json!({ "name": "one", "command": write("skill") })),
        ("changesets__open", json!({})),
        exec(&format!(
            "cd {}/workspaces/*/extensions/changesets/cs-*[0-9a-f] && echo b > notes.txt",
            fixture.text("state")
        )),
        ("changesets__commit", json!({ "message": "more" })),
    ];
    let script: Vec<_> = steps.iter().map(|(tool, args)| json!({ "call": { "tool": tool, "args": args } })).collect();
    let script = Value::from([script, vec![json!({ "say": "done" })]].concat());
    fs::write(fixture.path("script.yaml"), script.to_string()).unwrap();
    let output = fixture.run();

    let mut children = vec!["exec", "script", "skill", "setup", "check", "git"];
    for child in &children {
        let environment = fixture.environment(child);
        assert!(environment.contains(PLAIN.1), "{child}: {environment}");
    }
    if cfg!(feature = "mcp") {
        // What it was given, and no more than the variables of the SDKs.
        let environment = fixture.environment("server");
        assert!(environment.contains("DSN=postgres://me:planted-dsn@host") && !environment.contains(PLAIN.0));
        let names = environment.split_terminator('\0').map(|variable| variable.split('=').next().unwrap());
        // The last ones are those of the shell.
        let known = ["DSN", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "PWD", "SHLVL", "_", "OLDPWD"];
        assert!(names.clone().all(|name| known.contains(&name)), "{environment}");
        fs::remove_file(fixture.path("server")).unwrap();
        children.push("server");
    }

    // Neither what they printed, nor what was stored or sent of it.
    let printed = [("stdout".into(), output.stdout.clone()), ("stderr".into(), output.stderr.clone())];
    let stored = files(fixture.0.path()).into_iter().map(|path| (path.clone(), fs::read(path).unwrap()));
    for (source, bytes) in printed.into_iter().chain(stored) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("planted"), "{}:\n{text}", Path::display(&source));
    }
    assert!(fixture.results().contains(PLAIN.1), "the model read the output of `env`");

    let note = "these variables of the environment: ";
    let noted: Vec<_> = stderr(&output).lines().filter(|line| line.contains(note)).collect();
    let [line] = &noted[..] else { panic!("it is noted once: {noted:?}") };
    assert!(SECRETS.iter().all(|(name, _)| line.contains(name)) && !line.contains(PLAIN.0), "{line}");
}

#[test]
#[covers("ENV-01")]
fn a_child_cannot_read_the_keys_from_the_command() {
    let fixture = Fixture::new("", &[]);
    let read = "for file in environ mem maps; do head -c1 /proc/$PPID/$file >/dev/null 2>&1 && echo read-$file; done; \
                kill -0 $PPID && echo known; ulimit -c";
    let script = json!([{ "call": { "tool": "bash__exec", "args": { "command": read } } }, { "say": "done" }]);
    fs::write(fixture.path("script.yaml"), script.to_string()).unwrap();
    fixture.run();
    let results = fixture.results();
    assert!(
        results.contains("known") && !results.contains("read-environ") && !results.contains("read-mem"),
        "{results}"
    );
    assert!(!results.contains("read-maps"), "{results}");
}

#[test]
#[covers("ENV-01")]
fn a_library_that_is_described_gets_no_key() {
    let library = by_hand(env!("CARGO_TARGET_TMPDIR"), "spies");
    let dir = TempDir::new().unwrap();
    let spied = dir.path().join("spied");
    let mut command = unprivileged();
    command.args(["plugin", "inspect", "--describe", "--json"]).arg(library).env("SPY", &spied);
    let page = printed(command.env(PLAIN.0, PLAIN.1).envs(SECRETS));
    assert!(page.contains("\"parameters\""), "it was described: {page}");
    let found = String::from_utf8_lossy(&fs::read(spied).unwrap()).into_owned();
    assert!(found.contains(PLAIN.1), "{found}");
    // The bundle is not known, and neither are the names that it would make secrets of.
    for (name, value) in &SECRETS[1..] {
        assert!(!found.contains(name) && !found.contains(value), "{name}: {found}");
    }
    assert!(!found.contains("[heap]"), "the memory of the command cannot be read: {found}");
}

#[test]
#[covers("ENV-01")]
fn a_bundle_names_what_commands_get() {
    for (config, expected) in [
        (", env: [OTHER_API_KEY]", ["planted-key", PLAIN.1].as_slice()),
        (", inheritEnv: [PATH, DATABASE]", &["planted-dsn"]),
        (", inheritEnv: [PATH], env: [OTHER_API_KEY]", &["planted-key"]),
    ] {
        let fixture = Fixture::new(config, &[exec("env > ../got")]);
        fixture.run();
        let environment = fixture.environment("got");
        let all = SECRETS.map(|(_, value)| value).into_iter().chain([PLAIN.1]);
        for value in all {
            let is_expected = expected.iter().any(|part| value.contains(part));
            assert_eq!(environment.contains(value), is_expected, "{config}: {environment}");
        }
    }
}

#[test]
#[covers("ENV-01")]
fn tools_of_developers_work_with_the_default() {
    let push =
        "git remote add origin ../remote.git && git push --quiet origin main && git log -1 --format=%s origin/main";
    let cargo = format!("cargo metadata --offline --no-deps --format-version 1 --manifest-path {}", {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kit/lock/Cargo.toml");
        manifest.canonicalize().unwrap().display().to_string()
    });
    let fixture =
        Fixture::new("", &[exec(push), exec(&format!("{cargo} > ../metadata && cargo --version > ../version"))]);
    git(fixture.0.path(), &["init", "--quiet", "--bare", "remote.git"]);
    fs::write(fixture.path("repository/notes.txt"), "pushed\n").unwrap();
    git(&fixture.path("repository"), &["add", "--all"]);
    commit(&fixture.path("repository"));
    fixture.run();
    let remote = git(&fixture.path("remote.git"), &["log", "--format=%s", "main"]);
    assert_eq!(remote.lines().count(), 2, "{}", fixture.results());
    assert!(fixture.environment("version").starts_with("cargo "), "{}", fixture.results());
    assert!(fixture.environment("metadata").contains("goondan-lock"), "{}", fixture.results());
}

#[test]
#[covers("ENV-01")]
fn what_a_bundle_can_do_is_listed_without_running_it() {
    let fixture = Fixture::new(", env: [GH_TOKEN]", &[]);
    let check = |more: &[&str]| {
        let mut command = goondan();
        command.arg("check").arg(fixture.0.path()).arg("--capabilities").args(more).envs(SECRETS);
        printed(&mut command)
    };
    let page = check(&[]);
    let listed = [
        format!(
            "  command   sh -c \"cat /proc/self/environ > {}\"  (extension changesets of the agent main)\n",
            fixture.text("check")
        ),
        "  shell     bash  (extension bash of the agent main)\n".to_owned(),
        "  shell     skills  (extension skills of the agent main)\n".to_owned(),
        "  root      repository  (extension changesets of the agent main)\n".to_owned(),
        "  root      repository  (extension bash of the agent main)\n".to_owned(),
        "  variable  GH_TOKEN  (extension bash of the agent main)\n".to_owned(),
        "tools that act:\n  bash__exec  (extension bash of the agent main)\n".to_owned(),
        "  changesets__commit  (extension changesets of the agent main)\n".to_owned(),
    ];
    for line in listed {
        assert!(page.contains(&line), "{line}{page}");
    }
    if cfg!(feature = "mcp") {
        let owner = "extension server of the agent main";
        assert!(page.contains(&format!("  variable  DSN=$DATABASE  ({owner})\n")), "{page}");
        assert!(page.contains(&format!("  reads     DATABASE  (transport.env.DSN of the {owner})\n")), "{page}");
    }
    let (_, withheld) = page.rsplit_once("commands do not get these variables: ").unwrap();
    assert!(SECRETS.iter().all(|(name, _)| withheld.contains(name)) || !cfg!(feature = "mcp"), "{withheld}");
    assert!(!page.contains("planted"), "{page}");

    let object: Value = serde_json::from_str(&check(&["--json"])).unwrap();
    let listed = &object["capabilities"];
    let shell = json!({ "kind": "shell", "value": "bash", "owner": "extension bash of the agent main" });
    assert!(listed["capabilities"].as_array().unwrap().contains(&shell), "{object}");
    assert!(listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "bash__exec"), "{object}");
    assert!(listed["withheld"].as_array().unwrap().contains(&"GOONDAN_OAUTH_KEY".into()), "{object}");
    assert!(!fixture.path("check").exists() && !fixture.path("state").exists(), "nothing was run");
}

#[test]
fn a_bundle_that_does_nothing_outside_says_so() {
    let page = printed(goondan().args(["check", "--capabilities"]).arg(checkout().join("examples/quickstart")));
    assert!(page.contains("the agents do nothing outside of their conversations"), "{page}");

    // No setting names what the keys of AWS are read from.
    let page = printed(goondan().args(["check", "--capabilities"]).arg(checkout().join("examples/bedrock")));
    assert!(page.contains("host      https://bedrock-runtime.eu-central-1.amazonaws.com"), "{page}");
    assert!(page.contains("reads     AWS_SECRET_ACCESS_KEY  (the model main)"), "{page}");
}
