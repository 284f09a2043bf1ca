//! The commands of README.md, docs/ and the examples, typed as they stand there by a user who has run nothing before:
//! into a shell on a terminal, and into one without. Every line must be in [`BLOCKS`], which says what it does.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use goondan_covers::covers;
use goondan_libraries::Build;
use tempfile::TempDir;

use crate::screen::{CTRL_D, Screen};
use crate::support::PROGRAM;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What a line of a page does.
#[derive(Clone, Copy, PartialEq)]
enum Line {
    /// Succeeds without a question, and prints this.
    Prints(&'static str),
    /// Starts a conversation without a question.
    Talks,
    /// Starts a conversation after a question that lists this. Without a terminal it needs `--trust`.
    Asks(&'static str),
    /// Is not typed here, but in that test or script.
    Elsewhere(&'static str),
    /// Is not typed: it builds, or needs what a test does not have.
    Builds,
    Needs(&'static str),
}
use Line::{Asks, Builds, Elsewhere, Needs, Prints, Talks};

/// The commands that are together in one block of a page.
struct Block {
    pages: &'static [&'static str],
    /// What a user has done before, from the root of the checkout.
    before: &'static str,
    lines: &'static [(&'static str, Line)],
}

/// Blocks without lines that are typed are not run.
const BLOCKS: &[Block] = &[
    Block {
        pages: &["README.md"],
        before: "",
        lines: &[("cargo run -p quickstart", Elsewhere(".ci/run")), ("cargo test --workspace", Builds)],
    },
    Block {
        pages: &["README.md"],
        before: "",
        lines: &[("cargo run -p goondan-cli -- run examples/quickstart", Talks)],
    },
    Block {
        pages: &["README.md"],
        before: "",
        lines: &[(
            "cargo run -p goondan-cli -- run examples/anthropic --cassettes replay --input 'Hello! What are you?'",
            Prints("an assistant in a recording"),
        )],
    },
    Block {
        pages: &["docs/operating.md"],
        before: "",
        lines: &[("goondan order examples/quickstart", Prints("message-window"))],
    },
    Block {
        pages: &["README.md"],
        before: "",
        lines: &[
            ("cargo rustc -p goondan-message-window --crate-type cdylib", Builds),
            ("cp target/debug/libmessage_window.so examples/dynamic/plugins/", Prints("")),
            ("cargo run -p goondan-cli -- run examples/dynamic --trust", Talks),
        ],
    },
    Block {
        pages: &["docs/plugins.md"],
        before: "",
        lines: &[
            ("goondan new extension weather", Prints("cargo build --release")),
            ("cd weather", Prints("")),
            ("cargo build --release", Builds),
            ("goondan run", Elsewhere("goondan-cli/tests/command/new.rs")),
        ],
    },
    Block {
        pages: &["goondan-cli/README.md"],
        before: "",
        lines: &[
            ("cargo install goondan-cli", Builds),
            ("goondan new extension weather", Prints("cargo build --release")),
            ("cd weather", Prints("")),
            ("cargo build --release", Builds),
            ("goondan run", Elsewhere("goondan-cli/tests/command/new.rs")),
        ],
    },
    Block {
        pages: &["docs/operating.md"],
        before: "mkdir -p ~/.local/share/bash-completion/completions ~/.zfunc ~/.config/fish/completions",
        lines: &[
            ("goondan completions bash > ~/.local/share/bash-completion/completions/goondan", Prints("")),
            ("goondan completions zsh > ~/.zfunc/_goondan", Prints("")),
            ("goondan completions fish > ~/.config/fish/completions/goondan.fish", Prints("")),
            ("goondan man ~/.local/share/man/man1", Prints("")),
        ],
    },
    Block {
        pages: &["README.md", "docs/serving.md"],
        before: "",
        lines: &[("goondan serve examples/serve --ui --trust", Elsewhere("goondan-cli/tests/command/serve.rs"))],
    },
    Block {
        pages: &["docs/serving.md"],
        before: "",
        lines: &[("goondan serve examples/quickstart", Elsewhere("goondan-cli/tests/command/serve.rs"))],
    },
    Block {
        pages: &["docs/serving.md"],
        before: "",
        lines: &[(
            "curl -N http://127.0.0.1:7717/v1/agents/guide/instances/ada/turns -d '{\"input\": \"hello\"}'",
            Elsewhere("goondan-cli/tests/command/serve.rs"),
        )],
    },
    Block {
        pages: &["docs/serving.md"],
        before: "",
        lines: &[
            (
                "printf 'ada: %s\\n' \"$(printf %s \"$TOKEN\" | sha256sum | cut -d' ' -f1)\" >> tokens",
                Elsewhere("goondan-cli/tests/command/serve.rs"),
            ),
            (
                "goondan serve --listen 0.0.0.0:7717 --token-file tokens",
                Elsewhere("goondan-cli/tests/command/serve.rs"),
            ),
        ],
    },
    Block {
        pages: &["docs/serving.md"],
        before: "",
        lines: &[(
            "curl -N -H \"Authorization: Bearer $TOKEN\" -d '{\"input\": \"hi\"}' \
             localhost:7717/v1/agents/guide/instances/ada:notes/turns",
            Elsewhere("goondan-cli/tests/command/serve.rs"),
        )],
    },
    Block {
        pages: &["docs/composition.md"],
        before: "",
        lines: &[("cargo run -p goondan-cli -- run examples/workbench", Asks("command   sh server.sh"))],
    },
    Block {
        pages: &["docs/composition.md"],
        before: "",
        lines: &[("goondan order examples/workbench", Prints("outermost: the lowest priority"))],
    },
    Block {
        pages: &["docs/mcp.md"],
        before: "",
        lines: &[("cargo run -p goondan-cli -- run examples/mcp", Asks("command   sh server.sh"))],
    },
    Block {
        pages: &["docs/models.md"],
        before: "",
        lines: &[
            ("goondan run BUNDLE --cassettes record", Needs("a key")),
            ("goondan run BUNDLE --cassettes replay", Talks),
        ],
    },
    Block {
        pages: &["docs/models.md"],
        before: "",
        lines: &[(
            "goondan run examples/anthropic --cassettes replay --input 'Hello! What are you?'",
            Prints("an assistant in a recording"),
        )],
    },
    Block {
        pages: &["docs/models.md"],
        before: "",
        lines: &[
            ("cargo run -p goondan-models --example decode -- --wire anthropic FILE…", Builds),
            ("cargo run -p goondan-models --example decode -- --wire anthropic --bytes FILE…", Builds),
        ],
    },
    Block {
        pages: &["docs/models.md"],
        before: "",
        lines: &[
            (
                "python3 -m venv /tmp/sdks && /tmp/sdks/bin/pip install anthropic botocore openai google-genai",
                Needs("the network"),
            ),
            ("/tmp/sdks/bin/python adapters/models/tests/requests/check.py", Needs("the SDKs")),
        ],
    },
    Block {
        pages: &["docs/operating.md"],
        before: "goondan run examples/quickstart --input hello",
        lines: &[
            ("goondan instance repair <agent>:<key>", Prints("Nothing is wrong.")),
            ("goondan instance repair <agent>:<key> --yes", Prints("Nothing is wrong.")),
        ],
    },
    Block {
        pages: &["docs/performance.md"],
        before: "",
        lines: &[
            ("cargo bench -p goondan-benches", Builds),
            ("cargo bench -p goondan-models", Builds),
            ("benches/count.sh", Elsewhere(".ci/run")),
        ],
    },
    Block {
        pages: &["docs/plugins.md"],
        before: "",
        lines: &[("cargo rustc --release -p goondan-message-window --crate-type cdylib", Builds)],
    },
    Block {
        pages: &["docs/plugins.md"],
        // The library in another name, and the bundle that names it.
        before: "cd examples/dynamic && cp $CHECKOUT/target/debug/libmessage_window.so plugins/libweather.so &&
                 sed -i s,plugins/message_window,plugins/weather, goondan.yaml",
        lines: &[
            ("goondan plugin inspect plugins/libweather.so", Prints("message-window")),
            ("goondan plugin inspect plugins/libweather.so --json", Prints("\"message-window\"")),
            ("goondan plugin pack plugins/libweather.so", Prints("packed the schemas")),
            ("goondan plugin list .", Prints("message-window")),
            ("goondan check", Prints("no faults")),
            ("goondan schema . > goondan.schema.json", Prints("")),
        ],
    },
    Block {
        pages: &["docs/providers.md"],
        before: "",
        lines: &[(
            "cargo run -p own-provider -- run examples/own_provider",
            Elsewhere("examples/own_provider/tests/command.rs"),
        )],
    },
    Block {
        pages: &["docs/writing-extensions.md"],
        before: "",
        lines: &[
            ("goondan new extension notes", Prints("cargo build --release")),
            ("cd notes && cargo test", Elsewhere("goondan-cli/tests/command/new.rs")),
        ],
    },
    Block {
        pages: &["examples/c-plugin/README.md"],
        before: "",
        lines: &[("cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -o libc_plugin.so plugin.c", Builds)],
    },
    Block {
        pages: &["examples/coder/README.md"],
        before: "",
        lines: &[
            ("cargo install --path goondan-cli", Builds),
            ("coder=$PWD/examples/coder", Prints("")),
            ("cp -r examples/coder/sample /tmp/sample && cd /tmp/sample", Prints("")),
            ("git init && git add . && git commit -m start", Prints("start")),
            ("goondan run \"$coder\"", Asks("shell     bash")),
        ],
    },
    Block {
        pages: &["examples/coder/README.md"],
        before: "cp -r examples/coder ~/coder && cp -r examples/coder/sample ~/mine && cd ~/mine && git init -q",
        lines: &[("goondan run ~/coder --instance \"$(basename \"$PWD\")\"", Asks("shell     bash"))],
    },
    Block {
        pages: &["examples/notes/README.md"],
        before: "",
        lines: &[
            ("cargo run -p notes -- run examples/notes", Elsewhere("examples/notes/tests/conversation.rs")),
            ("cargo test -p notes", Builds),
        ],
    },
    Block {
        pages: &["examples/provider_tools/README.md"],
        before: "",
        lines: &[
            ("cargo run -p provider-tools -- run examples/provider_tools", Needs("a key")),
            (
                "cargo run -p provider-tools -- run examples/provider_tools --cassettes replay",
                Elsewhere("examples/provider_tools/tests/conversation.rs"),
            ),
            ("cargo test -p provider-tools", Builds),
        ],
    },
    Block {
        pages: &["examples/service/README.md"],
        before: "",
        lines: &[
            ("cargo run -p service -- examples/service", Elsewhere("examples/service/tests/service.rs")),
            (
                "curl -N -H 'X-User: ann' -d '{\"input\": \"hello\"}' \
                 localhost:8080/api/v1/agents/assistant/instances/ann:1/turns",
                Elsewhere("examples/service/tests/service.rs"),
            ),
        ],
    },
];

/// What a user replaces in a command of a page.
const PLACEHOLDERS: [(&str, &str); 3] =
    [("<agent>:<key>", "guide:default"), ("BUNDLE", "examples/anthropic"), ("/tmp/", "$TMP/")];

/// Returns the pages whose commands are typed.
fn pages() -> Vec<String> {
    let all = |directory: &str, named: fn(PathBuf) -> Option<PathBuf>| {
        let entries = fs::read_dir(Path::new(CHECKOUT).join(directory)).unwrap();
        entries.filter_map(|entry| named(entry.unwrap().path())).collect::<Vec<_>>()
    };
    let is_page = |page: PathBuf| page.extension().is_some_and(|extension| extension == "md").then_some(page);
    let mut pages = [all("docs", is_page), all("docs/recipes", is_page)].concat();
    pages.extend(all("examples", |example| Some(example.join("README.md")).filter(|page| page.exists())));
    let relative = |page: &PathBuf| page.strip_prefix(CHECKOUT).unwrap().to_str().unwrap().to_owned();
    let mut pages: Vec<_> = pages.iter().map(relative).collect();
    pages.extend(["README.md", "goondan-cli/README.md"].map(str::to_owned));
    pages.sort();
    pages
}

/// Returns the blocks of a page, each with its commands, without comments. Commands in the text are blocks, if they
/// name an example.
fn blocks(page: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(Path::new(CHECKOUT).join(page)).unwrap();
    let mut blocks = Vec::new();
    // A fence may be indented, as a part of a list.
    for (number, part) in text.split("```").enumerate() {
        if let Some(block) = part.strip_prefix("sh\n").filter(|_| number % 2 == 1) {
            let commands = block.lines().map(|line| line.split_once(" #").map_or(line, |(command, _)| command).trim());
            blocks.push(commands.filter(|command| !command.is_empty()).map(str::to_owned).collect());
        } else if number % 2 == 0 {
            let commands = part.split('`').skip(1).step_by(2).filter(|command| {
                ["goondan ", "cargo run "].iter().any(|name| command.starts_with(name)) && command.contains("examples/")
            });
            blocks.extend(commands.map(|command| vec![command.to_owned()]));
        }
    }
    blocks
}

#[test]
#[covers("TRUST-01")]
fn every_command_of_the_pages_is_listed_here() {
    let pages = pages();
    let commands = |block: &Block| block.lines.iter().map(|(command, _)| (*command).to_owned()).collect::<Vec<_>>();
    for page in &pages {
        let listed: Vec<_> = BLOCKS.iter().filter(|block| block.pages.contains(&page.as_str())).collect();
        let shown = blocks(page);
        for block in &shown {
            let known = listed.iter().any(|listed| commands(listed) == *block);
            assert!(known, "{page} shows these commands, which `BLOCKS` does not list:\n{}", block.join("\n"));
        }
        for block in listed {
            assert!(shown.contains(&commands(block)), "{page} shows these no more: {:?}", commands(block));
        }
    }
    for block in BLOCKS {
        assert!(block.pages.iter().all(|page| pages.iter().any(|known| known == page)), "{:?}", block.pages);
        for (command, line) in block.lines {
            if let Elsewhere(test) = line {
                assert!(Path::new(CHECKOUT).join(test).exists(), "{command} is typed in {test}");
            }
        }
    }
}

/// The checkout and the home of a new user.
struct User(TempDir);

impl User {
    fn new() -> Self {
        let this = Self(TempDir::new().unwrap());
        for directory in ["home", "bin", "tmp", "checkout/target/debug"] {
            fs::create_dir_all(this.path(directory)).unwrap();
        }
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(Path::new(CHECKOUT).join("examples")).arg(this.path("checkout"));
        assert!(copy.status().unwrap().success());
        symlink(PROGRAM, this.path("bin/goondan")).unwrap();
        // What is built by `cargo run` is the program of this test.
        let cargo =
            "#!/bin/sh\n[ \"$1 $2 $3 $4\" = 'run -p goondan-cli --' ] && shift 4 && exec goondan \"$@\"\nexit 1\n";
        fs::write(this.path("bin/cargo"), cargo).unwrap();
        fs::set_permissions(this.path("bin/cargo"), fs::Permissions::from_mode(0o755)).unwrap();
        this
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Puts the library where a build has it, for the blocks that need it.
    fn build(&self, block: &Block) {
        if [block.before, block.lines[0].0].iter().any(|line| line.contains("message_window") || line.contains("rustc"))
        {
            let library = Build::ready_made("message-window").run(env!("CARGO_TARGET_TMPDIR"));
            symlink(library, self.path("checkout/target/debug/libmessage_window.so")).unwrap();
        }
    }

    fn variables(&self) -> Vec<(&'static str, OsString)> {
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths([self.path("bin")].into_iter().chain(std::env::split_paths(&path))).unwrap();
        let mut variables = vec![("PATH", path), ("CHECKOUT", self.path("checkout").into())];
        variables.extend([("HOME", self.path("home").into()), ("TMP", self.path("tmp").into())]);
        variables.extend(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "me".into())));
        variables.extend(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "me@localhost".into())));
        variables
    }
}

/// Variables that would change what a new user sees.
const REMOVED: [&str; 6] =
    ["GOONDAN_LOG", "GOONDAN_STATE_ROOT", "GOONDAN_CASSETTES", "RUST_LOG", "ENV", "CLICOLOR_FORCE"];

/// Returns a command as a user types it.
fn filled_in(command: &str) -> String {
    PLACEHOLDERS.iter().fold(command.to_owned(), |command, (from, to)| command.replace(from, to))
}

/// Returns the lines of a block that are typed.
fn typed(block: &Block) -> impl Iterator<Item = (String, Line)> {
    let lines = block.lines.iter().filter(|(_, line)| !matches!(line, Elsewhere(_) | Builds | Needs(_)));
    lines.map(|&(command, line)| (filled_in(command), line))
}

/// The blocks with lines that are typed.
fn typed_blocks() -> impl Iterator<Item = &'static Block> {
    BLOCKS.iter().filter(|block| typed(block).next().is_some())
}

/// The prompt of the shell: the status of the last command, and how many there were.
const PROMPT: &str = "[$?] after $((n=n+1))$ ";

fn prompt(status: i32, number: usize) -> String {
    format!("[{status}] after {number}$")
}

#[test]
#[covers("TRUST-01")]
fn on_a_terminal_the_commands_of_the_pages_work_or_ask() {
    for block in typed_blocks() {
        let user = User::new();
        user.build(block);
        let mut shell = pty_process::blocking::Command::new("sh");
        for name in REMOVED {
            shell = shell.env_remove(name);
        }
        let shell = shell.current_dir(user.path("checkout")).envs(user.variables());
        let screen =
            Screen::run(shell.envs([("TERM", "xterm-256color"), ("NO_COLOR", "1"), ("PS1", PROMPT)]), user.0.path());
        let before: String = block.before.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let mut number = 1;
        screen.shows(&prompt(0, number));
        if !before.is_empty() {
            screen.send(&format!("{before}\r"));
            number += 1;
            screen.shows(&prompt(0, number));
        }
        for (command, line) in typed(block) {
            // A question is asked once.
            for is_first in [true, false] {
                screen.send(&format!("{command}\r"));
                number += 1;
                if let (Asks(listed), true) = (line, is_first) {
                    screen.shows("\nRun it? [y/N]");
                    screen.contains("can do this outside of its conversations:");
                    screen.contains(&format!("  {listed}"));
                    screen.send("y\r");
                }
                if matches!(line, Asks(_) | Talks) {
                    screen.shows("\n>");
                    screen.send(CTRL_D);
                }
                screen.shows(&prompt(0, number));
                if let Prints(text) = line {
                    screen.contains(text);
                }
                if !matches!(line, Asks(_)) {
                    break;
                }
            }
        }
        screen.send("exit\r");
        let (status, text) = screen.end();
        assert!(status.success(), "{text}");
        let asked = typed(block).filter(|(_, line)| matches!(line, Asks(_))).count();
        assert_eq!(text.matches("Run it?").count(), asked, "{text}");
    }
}

#[test]
#[covers("TRUST-01")]
fn without_a_terminal_the_commands_of_the_pages_work_or_are_refused_until_they_are_agreed_to() {
    for block in typed_blocks() {
        let user = User::new();
        user.build(block);
        let mut script = format!("exec 2>&1\n{}\n", block.before);
        let after = |script: &mut String, command: &str| {
            writeln!(script, "{command}\nprintf '\\n[%s] end of a command\\n' $?").unwrap();
        };
        for (command, line) in typed(block) {
            after(&mut script, &command);
            if matches!(line, Asks(_)) {
                after(&mut script, &format!("{command} --trust"));
                after(&mut script, &command);
            }
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(user.path("checkout")).envs(user.variables());
        REMOVED.iter().for_each(|name| _ = shell.env_remove(name));
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{script}\n{printed}");
        let mut results = printed.split("] end of a command\n").map(|result| result.rsplit_once("\n[").unwrap());
        let mut next = || results.next().unwrap();
        for (command, line) in typed(block) {
            let (text, status) = next();
            let refused = |text: &str, status: &str| {
                assert_eq!(status, "2", "{command}: {text}");
                assert!(text.contains("E_BUNDLE_TRUST") && text.contains("`goondan trust`"), "{command}: {text}");
            };
            if let Asks(listed) = line {
                refused(text, status);
                assert!(text.contains(&format!("  {listed}")), "{command}: {text}");
                let (text, status) = next();
                assert_eq!(status, "0", "{command} --trust: {text}");
                // It was for that run alone.
                let (text, status) = next();
                refused(text, status);
            } else {
                assert_eq!(status, "0", "{command}: {text}");
                assert!(!text.contains("E_BUNDLE_TRUST"), "{command}: {text}");
            }
            if let Prints(part) = line {
                assert!(text.contains(part), "{command}: {text}");
            }
        }
    }
}
