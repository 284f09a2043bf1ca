//! A library in C works, and its header has the layout of the tables (LINK-03).

use std::fmt::Write as _;
use std::fs;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use goondan::store::FileStore;
use goondan_abi::{Library, table};
use goondan_core::{ErrorCode, MiddlewareKind, Part, Result, ToolOutput};
use goondan_runtime::{Agent, ScriptItem, ScriptedModel, TurnUpdate};
use serde_json::{Value, json};

use crate::support::agent;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/c-plugin")
}

/// Compiles `source` as strict C11.
fn cc(source: &Path, flags: &[&str], output: &Path) {
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]).arg(example()).args(flags);
    let built = cc.arg("-o").arg(output).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// Expands to the name in C, the size and the offsets of the entries of each structure.
macro_rules! layouts {
    ($($table:ident = $name:literal { $($entry:ident)* })*) => {
        [$(($name, size_of::<table::$table>(), vec![$((stringify!($entry), offset_of!(table::$table, $entry))),*])),*]
    };
}

#[test]
fn the_header_has_the_layout_of_the_tables() {
    let layouts = layouts! {
        Declaration = "declaration" {
            magic size abi_major abi_minor pointer_width panic_unwind host_table_size plugin_table_size reserved
            api_version rustc target sdk_version entry
        }
        Text = "text" { data len }
        Buffer = "buffer" { data len extra free }
        Future = "future" { data table }
        FutureTable = "future_table" { size poll drop }
        Waker = "waker" { table }
        WakerTable = "waker_table" { size clone wake wake_by_ref drop }
        PluginTable = "plugin_table" { size extension_count describe register }
        Object = "object" { data table }
        ObjectTable = "object_table" { size call drop present }
        Registration = "registration" { size kind priority text object }
        HostTable = "host_table" {
            size abi_major abi_minor log_place log_enabled log_line secret_remember secret_forget
            extension_info extension_log extension_register extension_state extension_update_state
            extension_state_dir extension_shared_state extension_update_shared_state
             extension_subscribe extension_unsubscribe extension_emit extension_delegate
            extension_reload extension_release
            run_read run_write run_tool_catalog_revision run_message_count run_message_from run_message_before
            run_message_read run_message_metadata run_emit run_message_remove run_next run_request run_request_later
            run_send run_agents run_log run_progress result_read result_write result_release
        }
        HostTable1_2 = "host_table_1_2" { base extension_show }
        HostTable1_3 = "host_table_1_3" { base run_ask run_review run_transform extension_mask_inputs }
        Transformer = "transformer" { data table }
        TransformerTable = "transformer_table" { size piece end drop }
        Message = "message" { cursor next id role plain text }
        LogPlace = "log_place" { size name target file line level fields field_count }
        LogValue = "log_value" { kind bits text }
    };
    let (mut prints, mut expected) = (String::new(), String::new());
    for (name, size, entries) in layouts {
        writeln!(prints, r#"printf("{name} %zu\n", sizeof(goondan_{name}));"#).unwrap();
        writeln!(expected, "{name} {size}").unwrap();
        for (entry, offset) in entries {
            // `register` is a keyword of C.
            let member = if entry == "register" { "register_" } else { entry };
            writeln!(prints, r#"printf("{name}.{entry} %zu\n", offsetof(goondan_{name}, {member}));"#).unwrap();
            writeln!(expected, "{name}.{entry} {offset}").unwrap();
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("layouts.c"), directory.path().join("layouts"));
    let program_text = format!("#include <goondan.h>\n#include <stdio.h>\nint main(void) {{\n{prints}return 0;\n}}\n");
    fs::write(&source, program_text).unwrap();
    cc(&source, &[], &program);
    let printed = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), expected);
}

#[tokio::test]
async fn a_tool_and_a_middleware_in_c_run_in_a_turn() {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libc_plugin.so");
    cc(&example().join("plugin.c"), &["-O1", "-fPIC", "-shared", "-fvisibility=hidden"], &library);

    let inspected = Library::inspect(&library).unwrap();
    assert_eq!((inspected.package(), inspected.target()), ("c-plugin", "C"));
    let [record] = inspected.extensions() else { panic!("{inspected:?}") };
    assert_eq!((record.name.as_str(), record.tools[0].name.as_str()), ("c-plugin", "c__length"));
    assert_eq!(record.middlewares[0].kind, MiddlewareKind::ToolCall);

    let loaded = inspected.load().unwrap();
    let ask = || ScriptItem::call("c__length", json!({ "say": "it" }));
    let agent = agent([ask(), ask(), ScriptItem::call("c__missing", json!({})), ScriptItem::say("done")]);
    let agent = agent.described_extension("c-plugin", loaded.extension(None).unwrap(), json!({})).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "done");
    let messages = instance.messages().await.unwrap();
    let answers = [2, 4, 6].map(|at| serde_json::from_str::<Value>(&messages[at].text()).unwrap());
    let bytes = json!({ "output": { "bytes": r#"{"say":"it"}"#.len() } });
    assert_eq!(answers[0], json!({ "call": 1, "was": bytes }));
    assert_eq!(answers[1], json!({ "call": 2, "was": bytes }));
    assert!(answers[2]["was"]["error"]["code"].is_string(), "{}", answers[2]);
    instance.close().await.unwrap();
}

#[tokio::test]
async fn an_extension_in_c_learns_where_it_runs() {
    let lines = crate::runtime::listen();
    let root = tempfile::tempdir().unwrap();
    let loaded = Library::inspect(built("placed", &[])).unwrap().load().unwrap();
    let agent = agent([]).described_extension("placed-in-c", loaded.extension(None).unwrap(), json!({}));
    let agent = agent.store(FileStore::in_workspace(root.path(), "main").unwrap()).bundle_root(root.path());
    agent.build().unwrap().instance("one").await.unwrap();
    let text = lines.text();
    let fields: Vec<_> = text.lines().filter(|line| line.contains("extension=placed-in-c")).collect();
    let (root, dir) = (root.path().display(), root.path().join("workspaces/main/extensions/placed-in-c"));
    for expected in [r#""agent":"assistant""#, r#""instance":"one""#, &format!(r#""bundleRoot":"{root}""#)] {
        assert!(fields[0].contains("registered") && fields[0].contains(expected), "{fields:?}");
    }
    assert!(fields[1].contains(dir.to_str().unwrap()) && dir.is_dir(), "{fields:?}");
}

#[tokio::test]
async fn a_tool_in_c_says_how_far_it_is() {
    let loaded = Library::inspect(built("progress", &[])).unwrap().load().unwrap();
    let script = [ScriptItem::call("c__length", json!({ "say": "it" })), ScriptItem::say("done")];
    let agent =
        agent(script).described_extension("c-plugin", loaded.extension(None).unwrap(), json!({})).build().unwrap();
    let mut turn = agent.instance("one").await.unwrap().run_stream("hello");
    let mut told = Vec::new();
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Progress { done, total, text, .. } = update {
            told.push((done, total, text));
        }
    }
    assert_eq!(told, [(12.0, Some(12.0), "counted".to_owned())]);
}

/// Compiles the plugin with its source changed: each pair is a text and what replaces it.
fn built(name: &str, replaced: &[(&str, &str)]) -> PathBuf {
    let directory = tempfile::tempdir().unwrap();
    let mut plugin = fs::read_to_string(example().join("plugin.c")).unwrap();
    for (from, to) in replaced {
        assert!(plugin.contains(from), "{from}");
        plugin = plugin.replace(from, to);
    }
    let source = directory.path().join("plugin.c");
    fs::write(&source, plugin).unwrap();
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libc_plugin_{name}.so"));
    cc(&source, &["-O1", "-fPIC", "-shared", "-fvisibility=hidden"], &library);
    library
}

/// Returns what the model is sent after it called the tool `c__dot` of `library`.
async fn dot(library: &Path) -> ToolOutput {
    output_of(library, [ScriptItem::call("c__dot", json!({})), ScriptItem::say("done")]).await
}

/// Returns what the model is sent after its first call.
async fn output_of(library: &Path, script: impl IntoIterator<Item = ScriptItem>) -> ToolOutput {
    let loaded = Library::inspect(library).unwrap().load().unwrap();
    let agent =
        agent(script).described_extension("c-plugin", loaded.extension(None).unwrap(), json!({})).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    let messages = instance.messages().await.unwrap();
    let [Part::ToolResult(result)] = messages[2].content().parts() else { panic!("{:?}", messages[2]) };
    result.output.clone()
}

#[tokio::test]
async fn a_tool_in_c_answers_with_a_file() {
    let ToolOutput::Content(parts) = dot(&built("dot", &[])).await else { panic!() };
    let [Part::Text(text), Part::File(file)] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!((text.text.as_str(), file.label().as_str()), ("A dot:", "[image/gif dot.gif]"));
    assert!(file.url.starts_with("data:image/gif;base64,R0lGOD"));
}

#[tokio::test]
async fn a_tool_in_c_asks_the_model() {
    let script = || {
        let asked = ScriptItem::say("Baking").when("^Bread is baked").unwrap();
        [ScriptItem::call("c__ask", json!({})), asked, ScriptItem::say("done")]
    };
    let ToolOutput::Json(output) = output_of(&built("ask", &[]), script()).await else { panic!() };
    assert_eq!(output["was"], json!({ "output": { "model": {}, "response": "Baking" } }));

    let model = r#"{\"model\":{},\"system\":\"Answer with a title.\",\"options\":{\"temperature\":0},"#;
    for (name, members, code) in [
        ("both", r#"{\"target\":\"b\",\"model\":{},"#, "E_INPUT"),
        ("neither", "{", "E_INPUT"),
        ("text", r#"{\"target\":\"Model/small\","#, "AGENT_NOT_FOUND"),
        ("missing", r#"{\"model\":{\"name\":\"missing\"},"#, "E_MODEL_NOT_FOUND"),
    ] {
        let library = built(&format!("ask_{name}"), &[(model, members)]);
        let ToolOutput::Json(output) = output_of(&library, script()).await else { panic!() };
        assert_eq!(output["was"]["error"]["code"], code, "{output}");
    }
}

#[test]
fn two_extensions_of_the_same_name_are_refused() {
    let again = "static const goondan_host_table *host;";
    let second = r#"static const __typeof__(record) second __attribute__((section(".goondan"), used, aligned(1))) = {
        {LENGTH & 0xff, LENGTH >> 8 & 0xff, LENGTH >> 16 & 0xff, LENGTH >> 24 & 0xff}, RECORD};
        static const goondan_host_table *host;"#;
    let error = Library::inspect(built("twice", &[(again, second)])).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_LOAD);
    assert!(error.message().ends_with("holds two extensions called `c-plugin`"), "{error:?}");
    assert_eq!(error.suggestion(), Some("rename one of them"));
}

#[tokio::test]
async fn a_reply_in_c_with_a_part_that_no_tool_can_make_is_an_error() {
    let text = r#"{\"type\":\"text\",\"text\":\"A dot:\"}"#;
    let parts = [
        (r#"{\"type\":\"reasoning\",\"text\":\"hm\"}"#, "E_MESSAGE_PART"),
        (r#"{\"type\":\"hologram\"}"#, "E_MESSAGE_PART"),
        (
            r#"{\"type\":\"text\",\"text\":\"\",\"provider\":{\"api\":\"a\",\"model\":\"m\",\"rest\":{}}}"#,
            "E_MESSAGE_PART",
        ),
        (r#"{\"type\":\"file\"}"#, "E_MESSAGE_PART"),
        (r#"{\"no\":\"part\"}"#, "E_EXT_RUNTIME"),
    ];
    for (number, (part, code)) in parts.into_iter().enumerate() {
        let output = dot(&built(&format!("part_{number}"), &[(text, part)])).await;
        // The middleware of the plugin numbers errors too.
        let ToolOutput::Json(output) = &output else { panic!("{output:?}") };
        assert_eq!(output["was"]["error"]["code"], code, "{part}: {output}");
    }
}

/// Runs a turn with the library, whose model answers `asked`. Returns the outcome, what the model was sent, and the
/// number of messages that the conversation has then.
async fn step(library: &Path) -> (Result<String>, Vec<String>, usize) {
    let loaded = Library::inspect(library).unwrap().load().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let requests = directory.path().join("requests.jsonl");
    let model = ScriptedModel::new([ScriptItem::say("asked")]).record(&requests);
    let agent =
        Agent::builder("one").model(model).described_extension("c-plugin", loaded.extension(None).unwrap(), json!({}));
    let instance = agent.build().unwrap().instance("one").await.unwrap();
    let outcome = instance.run("hello").await.map(|turn| turn.text().into_owned());
    let sent: Value = serde_json::from_str(&fs::read_to_string(&requests).unwrap_or_default()).unwrap_or_default();
    let sent = sent["messages"].as_array().cloned().unwrap_or_default();
    let sent = sent.iter().map(|message| message["content"].to_string()).collect();
    (outcome, sent, instance.messages().await.unwrap().len())
}

#[tokio::test]
async fn a_middleware_in_c_edits_what_the_model_is_sent() {
    let (outcome, sent, messages) = step(&built("project", &[])).await;
    assert_eq!((outcome.unwrap().as_str(), messages), ("asked", 2));
    assert_eq!(sent, ["\"hello\"", "\"The answers of tools are numbered.\""]);
    let content = r#"\"The answers of tools are numbered.\""#;
    for (number, (content_instead, code)) in [
        (r#"[{\"type\":\"reasoning\",\"text\":\"hm\"}]"#, "E_MESSAGE_PART"),
        (r#"[{\"no\":\"part\"}]"#, "E_EXT_RUNTIME"),
    ]
    .into_iter()
    .enumerate()
    {
        let (outcome, sent, _) = step(&built(&format!("project_{number}"), &[(content, content_instead)])).await;
        assert_eq!((outcome.unwrap_err().code().as_str(), sent.len()), (code, 0));
    }
}

#[tokio::test]
async fn a_middleware_in_c_prepares_answers() {
    let answer = |number: &str, json: &str| {
        let write = (r#"text("project"), text(EXPLANATION)"#, &*format!(r#"text("answer"), text("{json}")"#));
        // The text is still used.
        let used = (
            "(void)data;\n    (void)input;\n    goondan_buffer error",
            "(void)data;\n    (void)input;\n    (void)EXPLANATION;\n    goondan_buffer error",
        );
        built(&format!("answer_{number}"), &[write, used])
    };
    let (outcome, sent, messages) = step(&answer("text", r#"\"from C\""#)).await;
    assert_eq!((outcome.unwrap().as_str(), sent.len(), messages), ("from C", 0, 2));
    for (number, json, code) in [
        ("part", r#"[{\"type\":\"reasoning\",\"text\":\"hm\"}]"#, "E_MESSAGE_PART"),
        ("empty", r#"\"\""#, "E_EXT_ANSWER"),
        ("number", "7", "E_EXT_RUNTIME"),
    ] {
        let (outcome, sent, _) = step(&answer(number, json)).await;
        assert_eq!((outcome.unwrap_err().code().as_str(), sent.len()), (code, 0), "{json}");
    }
    // For a tool call.
    let reply = r#"{\"output\":{\"type\":\"content\",\"value\":[{\"type\":\"text\",\"text\":\"prepared\"}]}}"#;
    let write = format!(
        "goondan_buffer error = fixed(\"\");\n    \
         if (host->run_write(call, text(\"answer\"), text(\"{reply}\"), &error) != GOONDAN_OK) {{\n        \
         return ready(GOONDAN_FAILED, error);\n    }}\n    /* The future of the rest does"
    );
    let output = dot(&built("answer_call", &[("/* The future of the rest does", &write)])).await;
    let ToolOutput::Content(parts) = output else { panic!("{output:?}") };
    assert!(matches!(&parts[..], [Part::Text(text)] if text.text == "prepared"), "{parts:?}");
}
