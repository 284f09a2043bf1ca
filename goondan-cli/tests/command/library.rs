//! Bundles whose extensions are in libraries, and the commands that read libraries.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use goondan_covers::covers;
use goondan_libraries::{Build, by_hand};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{self, RECORDED_MODEL, stderr, stdout};

const DIRECTORY: &str = env!("CARGO_TARGET_TMPDIR");

fn message_window() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| Build::ready_made("message-window").profile("dev").run(DIRECTORY))
}

fn fixture() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| Build::new("abi-fixture").profile("dev").run(DIRECTORY))
}

fn goondan(dir: &Path, arguments: &[&str]) -> Output {
    support::goondan().args(arguments).current_dir(dir).output().unwrap()
}

/// The file of the entry `./plugins/<name>`.
fn plugin(name: &str) -> String {
    format!("plugins/{DLL_PREFIX}{name}{DLL_SUFFIX}")
}

/// A bundle with the extension `name`, whose spec is `spec`, and with a copy of `library` as its only library.
fn bundle(name: &str, spec: &str, library: &Path) -> TempDir {
    let dir = TempDir::new().unwrap();
    let text = format!(
        "{RECORDED_MODEL}apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: {name} }}
spec: {{ {spec} }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: main }}
spec: {{ model: Model/main, extensions: [ {{ ref: Extension/{name} }} ] }}
"
    );
    fs::create_dir(dir.path().join("plugins")).unwrap();
    fs::write(dir.path().join("goondan.yaml"), text).unwrap();
    fs::write(dir.path().join("script.yaml"), "- { say: fine, repeat: true }\n").unwrap();
    fs::copy(library, dir.path().join(plugin("it"))).unwrap();
    dir
}

const WINDOW: &str = "entry: ./plugins/it, config: { maxMessages: 2 }";

#[test]
#[covers("LOAD-04")]
fn a_bundle_runs_an_extension_from_a_library() {
    let dir = bundle("message-window", WINDOW, message_window());
    for input in ["one", "two", "three"] {
        // From another directory: paths in a bundle are relative to the bundle.
        let path = dir.path().to_str().unwrap();
        let state = dir.path().join("state");
        let output = goondan(
            Path::new("/"),
            &["run", "--trust", path, "--input", input, "--state-root", state.to_str().unwrap()],
        );
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), "fine\n"), "{}", stderr(&output));
    }
    let requests = fs::read_to_string(dir.path().join("requests.jsonl")).unwrap();
    let last: Value = serde_json::from_str(requests.lines().last().unwrap()).unwrap();
    assert_eq!(last["messages"].as_array().unwrap().len(), 1, "the window of the library is around the turns: {last}");
    let order = goondan(dir.path(), &["order", "--trust"]);
    assert!(stdout(&order).contains("message-window  trim      0"), "{}{}", stdout(&order), stderr(&order));
}

#[test]
#[covers("TRUST-01")]
fn the_layers_of_a_library_are_shown_after_an_agreement_because_it_is_loaded() {
    let dir = bundle("message-window", WINDOW, message_window());
    let state = dir.path().join("state");
    let order =
        || support::goondan().arg("order").current_dir(&dir).env("GOONDAN_STATE_ROOT", &state).output().unwrap();
    let refused = order();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(stderr(&refused).contains("E_BUNDLE_TRUST") && stdout(&refused).is_empty(), "{refused:?}");
    let mut trust = support::goondan();
    trust.args(["trust", "."]).current_dir(&dir).env("GOONDAN_STATE_ROOT", &state);
    assert!(trust.output().unwrap().status.success());
    assert!(stdout(&order()).contains("message-window  trim"), "{:?}", order());
}

#[test]
fn one_of_several_extensions_is_chosen_by_the_name_in_the_bundle() {
    let dir = bundle("noop", "entry: ./plugins/it", fixture());
    let output = goondan(dir.path(), &["run", "--trust", "--input", "hi", "--state-root", "state"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "fine\n"), "{}", stderr(&output));
    let dir = bundle("nope", "entry: ./plugins/it", fixture());
    for command in [&["check"][..], &["run", "--trust", "--input", "hi", "--state-root", "state"]] {
        let output = goondan(dir.path(), command);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in ["goondan.yaml:9:16: ", "E_EXT_LOAD", "none is called `nope`", "everything"] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
}

#[test]
fn an_absolute_entry_needs_an_option() {
    let dir = bundle("window", WINDOW, message_window());
    let file = dir.path().join(plugin("it"));
    let text = fs::read_to_string(dir.path().join("goondan.yaml")).unwrap();
    fs::write(dir.path().join("goondan.yaml"), text.replace("./plugins/it", file.to_str().unwrap())).unwrap();
    for command in
        [&["check"][..], &["order", "--trust"], &["run", "--trust", "--input", "hi", "--state-root", "state"]]
    {
        let refused = goondan(dir.path(), command);
        assert_eq!(refused.status.code(), Some(2));
        let said = format!("{}{}", stdout(&refused), stderr(&refused));
        assert!(said.contains("--allow-absolute-plugins"), "{said}");
        let allowed = goondan(dir.path(), &[command, &["--allow-absolute-plugins"]].concat());
        assert_eq!(allowed.status.code(), Some(0), "{}{}", stdout(&allowed), stderr(&allowed));
    }
}

#[test]
#[covers("ERR-02", "ERR-05")]
fn a_library_that_cannot_be_loaded_is_an_error_with_position_and_remedy() {
    let dir = bundle("message-window", WINDOW, message_window());
    let file = dir.path().join(plugin("it"));
    let whole = fs::read(&file).unwrap();
    let mut foreign = whole.clone();
    let declaration = foreign.windows(16).position(|bytes| bytes == b"GOONDAN-EXT-ABI\0").unwrap();
    foreign[declaration + 20] = 7;
    for (bytes, parts) in [
        (whole[..whole.len() / 2].to_vec(), ["E_EXT_LOAD", "is damaged or incomplete", "build or copy it again"]),
        (foreign, ["E_EXT_COMPAT", "ABI 7.0", "this program speaks ABI 1.3"]),
    ] {
        fs::write(&file, bytes).unwrap();
        for command in
            [&["check"][..], &["run", "--trust", "--input", "hi", "--state-root", "state"], &["order", "--trust"]]
        {
            let output = goondan(dir.path(), command);
            assert_eq!(output.status.code(), Some(2));
            let said = format!("{}{}", stdout(&output), stderr(&output));
            for part in parts.iter().chain(&["goondan.yaml:9:16: ", "help: ", "\n1 fault\n"]) {
                assert!(said.contains(part), "{part} in {said}");
            }
        }
    }
    fs::remove_file(&file).unwrap();
    let output = goondan(dir.path(), &["check"]);
    assert!(stdout(&output).contains("names a library that does not exist"), "{}", stdout(&output));
}

#[test]
fn a_digest_pins_the_content_of_a_library() {
    let dir = bundle("message-window", WINDOW, message_window());
    let inspected = goondan(dir.path(), &["plugin", "inspect", &plugin("it"), "--json"]);
    let inspected: Value = serde_json::from_slice(&inspected.stdout).unwrap();
    let digest = inspected["sha256"].as_str().unwrap();
    let text = fs::read_to_string(dir.path().join("goondan.yaml")).unwrap();
    let pinned = text.replace("entry: ./plugins/it", &format!("entry: ./plugins/it, sha256: {digest}"));
    fs::write(dir.path().join("goondan.yaml"), pinned).unwrap();
    let run = ["run", "--trust", "--input", "hi", "--state-root", "state"];
    assert_eq!(stdout(&goondan(dir.path(), &run)), "fine\n");
    let packed = goondan(dir.path(), &["plugin", "pack", &plugin("it")]);
    assert_eq!(packed.status.code(), Some(0), "{}", stderr(&packed));
    for command in [&["check"][..], &run] {
        let output = goondan(dir.path(), command);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("the bundle pins {digest}")) && said.contains("goondan.yaml:9:"), "{said}");
    }
}

#[test]
#[covers("LINK-02")]
fn inspecting_shows_what_a_library_holds_and_runs_nothing() {
    let directory = TempDir::new().unwrap();
    let output = goondan(directory.path(), &["plugin", "inspect", fixture().to_str().unwrap()]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let page = stdout(&output);
    for part in [
        "  crate       abi-fixture\n",
        "  abi         1.0\n",
        "  api         goondan.ai/v1\n",
        "  compiler    rustc 1.",
        "  schemas     not packed\n",
        "\neverything ",
        "listens to  fixture.*\n",
        "\nlinked in from other crates, and not offered: a-linked-in\n",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let exits = by_hand(DIRECTORY, "exits");
    let output = goondan(directory.path(), &["plugin", "inspect", exits.to_str().unwrap(), "--json"]);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&object["extensions"][0]["name"], &object["schemas"]), (&"frozen".into(), &Value::Null));
    assert_eq!(object["extensions"][0]["middlewares"][0]["kind"], "step");
    let output = goondan(directory.path(), &["plugin", "inspect", "/dev/null"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    assert!(stderr(&output).contains("E_EXT_LOAD") && stderr(&output).contains("help: "), "{}", stderr(&output));
}

#[test]
fn packed_schemas_are_shown_and_checked_without_running_the_library() {
    let dir = bundle("message-window", "entry: ./plugins/it, config: { maxMessages: 0 }", message_window());
    let checked = goondan(dir.path(), &["check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stdout(&checked));
    for part in ["goondan.yaml:8:19: hint: ", "was not checked", "plugin pack ", "check --describe"] {
        assert!(stdout(&checked).contains(part), "{part} in {}", stdout(&checked));
    }
    let refused = goondan(dir.path(), &["check", "--describe"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
    assert!(stdout(&refused).contains("E_EXT_CONFIG"), "{}", stdout(&refused));

    let described = goondan(dir.path(), &["plugin", "inspect", &plugin("it"), "--describe"]);
    for part in ["schemas     not packed; the library was run for them\n", "  config      {", "maxMessages"] {
        assert!(stdout(&described).contains(part), "{part} in {}", stdout(&described));
    }
    let before = fs::read(dir.path().join(plugin("it"))).unwrap();
    let packed = goondan(dir.path(), &["plugin", "pack", &plugin("it")]);
    assert_eq!(stdout(&packed), "packed the schemas of the extension message-window\n", "{}", stderr(&packed));
    let once = fs::read(dir.path().join(plugin("it"))).unwrap();
    goondan(dir.path(), &["plugin", "pack", &plugin("it")]);
    assert!(once.starts_with(&before) && fs::read(dir.path().join(plugin("it"))).unwrap() == once);

    let refused = goondan(dir.path(), &["check"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
    assert!(stdout(&refused).contains("goondan.yaml:9:") && stdout(&refused).contains("E_EXT_CONFIG"));
    let shown = goondan(dir.path(), &["plugin", "inspect", &plugin("it")]);
    assert!(stdout(&shown).contains("  schemas     packed\n"), "{}", stdout(&shown));
    let text = fs::read_to_string(dir.path().join("goondan.yaml")).unwrap();
    fs::write(dir.path().join("goondan.yaml"), text.replace("maxMessages: 0", "maxMessages: 9")).unwrap();
    assert_eq!(stdout(&goondan(dir.path(), &["run", "--trust", "--input", "hi", "--state-root", "state"])), "fine\n");
}

#[test]
fn a_library_that_crashes_while_it_is_described_is_an_error() {
    let directory = TempDir::new().unwrap();
    let ask = |cfg: &str, arguments: &[&str]| {
        let file = by_hand(DIRECTORY, cfg);
        let before = fs::read(&file).unwrap();
        let output = goondan(directory.path(), &[arguments, &[file.to_str().unwrap()]].concat());
        assert_eq!((output.status.code(), fs::read(&file).unwrap() == before), (Some(2), true), "{cfg}");
        assert!(stderr(&output).contains("E_EXT_LOAD") && stderr(&output).contains("help: "), "{}", stderr(&output));
        stderr(&output).to_owned()
    };
    for command in [&["plugin", "inspect", "--describe"][..], &["plugin", "pack"]] {
        assert!(ask("exits", command).contains("ended before it was described: exit status: 3"));
        let crashed = ask("crashes", command);
        assert!(crashed.contains("SIGABRT") && crashed.contains("about to crash"), "{crashed}");
        assert!(ask("hangs", &[command, &["--deadline", "1"]].concat()).contains("was not described within 1 s"));
    }
    let dir = bundle("frozen", "entry: ./plugins/it", &by_hand(DIRECTORY, "exits"));
    let output = goondan(dir.path(), &["check", "--describe"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("goondan.yaml:9:16: ") && stdout(&output).contains("exit status: 3"));
    assert_eq!(goondan(dir.path(), &["check"]).status.code(), Some(0), "checking alone runs nothing");
}

#[test]
fn output_of_a_library_is_not_mistaken_for_its_schemas() {
    let directory = TempDir::new().unwrap();
    let talks = by_hand(DIRECTORY, "talks");
    let output = goondan(directory.path(), &["plugin", "inspect", "--describe", "--json", talks.to_str().unwrap()]);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["schemas"][0]["tools"][0]["name"], "frozen__echo", "{object}");
}

#[test]
fn the_schema_and_the_list_of_a_bundle_have_the_extensions_of_its_libraries() {
    let dir = bundle("window", WINDOW, message_window());
    let settings = |arguments: &[&str]| {
        let output = goondan(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
        (schema["$defs"]["library:window"]["properties"]["maxMessages"].is_object(), stderr(&output).to_owned())
    };
    assert_eq!(settings(&["schema"]), (false, String::new()));
    let (known, hint) = settings(&["schema", "."]);
    assert!(
        !known && hint.contains("`window`") && hint.contains("plugin pack") && hint.contains("--describe"),
        "{hint}"
    );
    assert_eq!(settings(&["schema", ".", "--describe"]), (true, String::new()));
    goondan(dir.path(), &["plugin", "pack", &plugin("it")]);
    assert_eq!(settings(&["schema", "."]), (true, String::new()));

    let size = fs::metadata(dir.path().join(plugin("it"))).unwrap().len();
    let page = goondan(dir.path(), &["plugin", "list", "."]);
    let paragraph = format!("  entry       ./plugins/it, called window\n  size        {size} bytes\n");
    assert!(stdout(&page).ends_with(&paragraph), "{}", stdout(&page));
    let list = goondan(dir.path(), &["plugin", "list", ".", "--json"]);
    let list: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap();
    let (library, linked) = list.split_last().unwrap();
    let found = ["name", "entry", "called", "size"].map(|key| library[key].clone());
    assert_eq!(found, [json!("message-window"), json!("./plugins/it"), json!("window"), json!(size)]);
    assert!(linked.iter().all(|extension| extension.get("entry").is_none()), "{linked:?}");
}

#[test]
fn schema_and_list_run_no_library_without_describe() {
    let dir = bundle("frozen", "entry: ./plugins/it", &by_hand(DIRECTORY, "exits"));
    for command in [&["schema", "."][..], &["plugin", "list", "."]] {
        assert_eq!(goondan(dir.path(), command).status.code(), Some(0), "{command:?}");
    }
    let described = goondan(dir.path(), &["schema", ".", "--describe"]);
    assert_eq!(described.status.code(), Some(2));
    assert!(stderr(&described).contains("exit status: 3"), "{}", stderr(&described));
}

#[test]
fn an_entry_selects_one_of_several_extensions_and_the_bundle_names_it() {
    let dir = bundle("quiet", "entry: './plugins/it#noop'", fixture());
    let output = goondan(dir.path(), &["run", "--trust", "--input", "hi", "--state-root", "state"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "fine\n"), "{}", stderr(&output));
    let list = goondan(dir.path(), &["plugin", "list", "."]);
    assert!(stdout(&list).contains("  entry       ./plugins/it#noop, called quiet\n"), "{}", stdout(&list));
    for (library, wrong) in [(fixture(), "nope"), (message_window(), "window")] {
        let dir = bundle("quiet", &format!("entry: './plugins/it#{wrong}'"), library);
        let output = goondan(dir.path(), &["check"]);
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        for part in ["goondan.yaml:9:16: ", "E_EXT_LOAD", &format!("called `{wrong}`"), "choose by name one of: "] {
            assert!(stdout(&output).contains(part), "{part} in {}", stdout(&output));
        }
    }
}

#[test]
fn a_config_error_of_a_run_has_the_place_that_check_reports() {
    let dir = bundle("message-window", "entry: ./plugins/it, config: { maxMessages: 0 }", message_window());
    let run = goondan(dir.path(), &["run", "--trust", "--input", "hi", "--state-root", "state"]);
    let check = goondan(dir.path(), &["check", "--describe"]);
    for said in [stderr(&run), stdout(&check)] {
        for part in ["goondan.yaml:9:53: ", "E_EXT_CONFIG", "`maxMessages`: 0 is less than the minimum"] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
    assert_eq!((run.status.code(), check.status.code()), (Some(2), Some(2)));
}

#[test]
#[covers("ERR-06")]
fn an_extension_that_cannot_be_initialized_is_reported_once_with_its_cause() {
    let dir = bundle("modes", "entry: ./plugins/it, config: { mode: fail-in-init }", fixture());
    let output = goondan(dir.path(), &["run", "--trust", "--input", "hi", "--state-root", "state"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output).matches("E_EXT_INIT: ").count(), 1, "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("caused by: ").count(), 1, "{}", stderr(&output));
}

#[test]
#[covers("LOAD-11")]
fn extensions_clean_up_at_the_end_of_a_run_and_what_they_store_then_is_kept() {
    let dir = bundle("everything", "entry: ./plugins/it, config: { tag: t }", fixture());
    let run = ["run", "--trust", "--state-root", "state"];
    let output = goondan(dir.path(), &[&run[..], &["--input", "hi"]].concat());
    assert!(stderr(&output).contains("closed"), "{output:?}");
    // No input at all: the conversation is opened and closed.
    let output = goondan(dir.path(), &run);
    assert!(stderr(&output).contains("closed"), "{output:?}");
    let state = dir.path().join("state/workspaces/main/instances/main:default/extensions/everything.json");
    assert_eq!(fs::read_to_string(&state).unwrap().matches("t closed").count(), 2, "{}", state.display());
}

#[test]
fn a_packed_library_that_was_damaged_is_refused_by_every_command() {
    let dir = bundle("message-window", WINDOW, message_window());
    let file = dir.path().join(plugin("it"));
    let length = fs::read(&file).unwrap().len();
    assert_eq!(goondan(dir.path(), &["plugin", "pack", &plugin("it")]).status.code(), Some(0));
    let mut bytes = fs::read(&file).unwrap();
    bytes[length / 2] ^= 1;
    fs::write(&file, bytes).unwrap();
    for command in [
        &["check"][..],
        &["order", "--trust"],
        &["run", "--trust", "--input", "hi", "--state-root", "state"],
        &["plugin", "inspect", &plugin("it")],
        &["plugin", "pack", &plugin("it")],
    ] {
        let output = goondan(dir.path(), command);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("E_EXT_LOAD") && said.contains("another digest than when it was packed"), "{said}");
    }
}

#[test]
fn a_tool_without_a_description_is_a_hint() {
    let described = b"\"frozen__echo\",\"description\":\"Says it again.\",\"effect\":\"read\",\"timeoutMs\"";
    let mut bytes = fs::read(by_hand(DIRECTORY, "plain")).unwrap();
    let place = bytes.windows(described.len()).position(|window| window == described).unwrap();
    bytes[place + 30..place + 44].fill(b' ');
    let library = TempDir::new().unwrap();
    fs::write(library.path().join("lib.so"), bytes).unwrap();
    let dir = bundle("frozen", "entry: ./plugins/it", &library.path().join("lib.so"));
    let checked = goondan(dir.path(), &["check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stdout(&checked));
    let hint = "hint: the tool `frozen__echo` of the extension `frozen` has no description";
    assert!(stdout(&checked).contains(hint), "{}", stdout(&checked));
    let page = goondan(dir.path(), &["plugin", "inspect", &plugin("it")]);
    assert!(stdout(&page).contains("\nhint: the tool `frozen__echo` has no description"), "{}", stdout(&page));
    let object = goondan(dir.path(), &["plugin", "inspect", &plugin("it"), "--json"]);
    let object: Value = serde_json::from_slice(&object.stdout).unwrap();
    assert_eq!(object["hints"].as_array().unwrap().len(), 1, "{object}");
}
