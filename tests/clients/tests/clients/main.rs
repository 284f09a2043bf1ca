//! Programs of others that talk with goondan. Node runs them; `.ci/clients` installs it and them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod served;

use std::path::{Path, PathBuf};
use std::process::Command;

use goondan_covers::covers;

/// The scenarios of `@modelcontextprotocol/conformance` for clients, less those of authorization, those of extensions
/// of the protocol, and `sse-retry`, which measures how late a client is: `.ci/long` runs that.
const SCENARIOS: [&str; 10] = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
];

fn installed(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("node_modules").join(path);
    assert!(path.exists(), "{} does not exist: run `.ci/clients`", path.display());
    path
}

/// Runs one scenario, and returns what its runner prints.
fn run(scenario: &str) -> String {
    let mut runner = Command::new(installed(".bin/node"));
    runner.arg(installed("@modelcontextprotocol/conformance/dist/index.js")).arg("client");
    runner.args(["--command", env!("CARGO_BIN_EXE_mcp-client"), "--scenario", scenario, "--timeout", "60000"]);
    let output = runner.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {text}");
    text
}

#[test]
#[covers("ASK-04", "PATTERN-MCP-08")]
fn the_scenarios_of_the_protocol_pass() {
    let scenarios = SCENARIOS.into_iter().chain(std::env::var("GOONDAN_RUNS").is_ok().then_some("sse-retry"));
    for scenario in scenarios {
        let text = run(scenario);
        let passed = text.lines().find_map(|line| line.strip_prefix("Passed: "));
        let (checks, all) =
            passed.and_then(|line| line.split(',').next()?.split_once('/')).unwrap_or_else(|| panic!("{text}"));
        assert!(checks == all && checks != "0", "{scenario}: {text}");
        println!("{scenario}: {checks} of {all} checks");
    }
}
