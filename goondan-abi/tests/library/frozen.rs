//! Libraries that were built against versions 1.0 and 1.1 of the tables keep working when entries are added (LINK-03).

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use goondan::store::FileStore;
use goondan_abi::{Library, Loaded, table};
use goondan_core::{Message, Part, ToolOutput, ToolResultPart};
use goondan_libraries::by_hand;
use goondan_runtime::{InstanceId, ScriptItem, TurnUpdate};
use serde_json::json;

use crate::c;
use crate::support::agent;

#[path = "../frozen/v1.rs"]
mod v1;
#[path = "../frozen/v1_1.rs"]
mod v1_1;

/// Asserts that every entry of an old version has its old offset, and that no table has shrunk.
macro_rules! unmoved {
    ($old:ident: $($table:ident { $($entry:ident)* })*) => {
        $(
            $(
                let (now, before) = (offset_of!(table::$table, $entry), offset_of!($old::$table, $entry));
                assert_eq!(now, before, stringify!($table, $entry));
            )*
            assert!(size_of::<table::$table>() >= size_of::<$old::$table>());
        )*
    };
}

/// Asserts that types which are passed by value, or written by the other binary, have not grown.
macro_rules! same_size {
    ($old:ident: $($passed:ident)*) => {
        $(assert_eq!(size_of::<table::$passed>(), size_of::<$old::$passed>(), stringify!($passed));)*
    };
}

/// Asserts that numbers and texts mean what they meant.
macro_rules! same_value {
    ($old:ident: $($constant:ident)*) => { $(assert_eq!(table::$constant, $old::$constant);)* };
}

#[test]
fn the_entries_of_version_1_keep_their_offsets() {
    unmoved! { v1:
        Declaration {
            magic size abi_major abi_minor pointer_width panic_unwind host_table_size plugin_table_size reserved
            api_version rustc target sdk_version entry
        }
        Text { data len }
        Buffer { data len extra free }
        Future { data table }
        FutureTable { size poll drop }
        Waker { table }
        WakerTable { size clone wake wake_by_ref drop }
        PluginTable { size extension_count describe register }
        Object { data table }
        ObjectTable { size call drop }
        Registration { size kind priority text object }
        HostTable {
            size abi_major abi_minor log_place log_enabled log_line extension_log extension_register extension_state
            extension_update_state extension_subscribe extension_unsubscribe extension_emit extension_release run_read
            run_write run_message_count run_message_from run_message_before run_message_read run_emit run_next
            run_request run_request_later run_send run_agents run_log result_read result_write result_release
        }
        Message { cursor next id role plain text }
        LogPlace { size name target file line level fields field_count }
        LogValue { kind bits text }
    }
    same_size! { v1: Text Buffer Future Object Message LogValue }
    same_value! { v1: DECLARATION_SYMBOL MAGIC ABI_MAJOR }
    same_value! { v1: OK FAILED PANICKED NONE PENDING HANDLE TURN STEP TOOL_CALL TOOL SUBSCRIPTION CLEANUP BASE NOW }
}

#[test]
fn the_entries_of_version_1_1_keep_their_offsets() {
    // Its other tables are those of version 1.0.
    unmoved! { v1_1:
        Declaration { entry }
        FutureTable { size poll drop }
        WakerTable { size clone wake wake_by_ref drop }
        PluginTable { size extension_count describe register }
        ObjectTable { size call drop }
        Registration { size kind priority text object }
        HostTable {
            result_release extension_surroundings extension_state_dir run_progress secret_remember secret_forget
        }
        LogPlace { size name target file line level fields field_count }
    }
    const { assert!(table::ABI_MINOR >= v1_1::ABI_MINOR) };
    same_size! { v1_1: Text Buffer Future Object Message LogValue }
    same_value! { v1_1: REPLY }
}

/// Returns the hand-written library, compiled once for each `cfg`.
pub(crate) fn build(cfg: &'static str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    BUILT.lock().unwrap().entry(cfg).or_insert_with(|| by_hand(env!("CARGO_TARGET_TMPDIR"), cfg)).clone()
}

async fn works(library: Loaded) {
    let script = [ScriptItem::call("frozen__echo", json!({ "say": "it" })), ScriptItem::say("done")];
    let extension = library.extension(None).unwrap();
    let instance = agent(script).described("old", extension, json!({})).build().unwrap().instance("one").await;
    let instance = instance.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "done");
    assert_eq!(instance.messages().await.unwrap()[2].text(), r#"{"say":"it"}"#);
    instance.close().await.unwrap();
}

#[tokio::test]
async fn a_library_that_was_built_against_version_1_works() {
    works(Library::inspect(build("plain")).unwrap().load().unwrap()).await;
}

/// It uses the entries that version 1.1 added.
#[tokio::test]
async fn a_library_that_was_built_against_version_1_1_works() {
    let library = Library::inspect(build("minor_1")).unwrap();
    assert_eq!(library.abi_version(), "1.1");
    let library = library.load().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let script = [ScriptItem::call("frozen__echo", json!({ "say": "it" })), ScriptItem::say("done")];
    let agent = agent(script).described("old", library.extension(None).unwrap(), json!({}));
    let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let mut turn = instance.run_stream("hello");
    let mut progress = Vec::new();
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Progress { done, total, text, .. } = update {
            progress.push((done, total, text));
        }
    }
    assert_eq!(turn.finish().await.unwrap().text(), "done");
    assert_eq!(progress, [(1.0, Some(2.0), "half".to_owned())]);
    let messages = instance.messages().await.unwrap();
    let [result] = &results(&messages)[..] else { panic!("{messages:?}") };
    assert!(result.is_error);
    let ToolOutput::Json(answer) = &result.output else { panic!("{result:?}") };
    assert_eq!(answer[0], json!({ "say": "it" }));
    let place = ["extension", "agent", "instance"].map(|member| answer[1][member].as_str().unwrap_or_default());
    assert_eq!(place, ["old", "assistant", "one"]);
    assert!(dir.path().join("extensions/old").is_dir());
    instance.close().await.unwrap();
}

#[tokio::test]
async fn a_library_whose_table_has_one_more_entry_works() {
    works(Library::inspect(build("grown")).unwrap().load().unwrap()).await;
}

#[tokio::test]
async fn a_library_works_in_a_host_whose_table_has_one_more_entry() {
    #[repr(C)]
    struct Grown {
        v1: table::HostTable,
        added: extern "C" fn() -> u32,
    }

    extern "C" fn added() -> u32 {
        7
    }

    // SAFETY: A table consists of numbers and function pointers, which can be copied.
    let mut v1 = unsafe { std::ptr::read(goondan_abi::host_table()) };
    v1.size = size_of::<Grown>();
    v1.abi_minor += 1;
    let grown: &'static Grown = Box::leak(Box::new(Grown { v1, added }));
    let library = Library::inspect(build("older")).unwrap().load_with(&grown.v1).unwrap();
    assert_eq!((grown.added)(), 7);
    works(library).await;
}

/// Runs `frozen/sdk/libsdk.so` in a conversation, and checks its answers and its state.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#[tokio::test]
async fn a_library_built_from_the_sdk_of_0_1_0_runs_a_conversation() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frozen/sdk/libsdk.so");
    let library = Library::inspect(file).unwrap().load().unwrap();
    let call = |tool: &str, args| ScriptItem::call(format!("sdk__{tool}"), args);
    let script = [
        call("declared", json!({ "word": "one" })),
        call("dynamic", json!({ "word": "two" })),
        call("content", json!({})),
        call("fail", json!({})),
        call("slow", json!({})),
        ScriptItem::say("done"),
    ];
    let agent = agent(script).described("sdk", library.extension(None).unwrap(), json!({ "tag": "A" }));
    let instance = agent.build().unwrap().instance("user:1").await.unwrap();

    let result = instance.run("hello").await.unwrap();
    assert_eq!(result.text(), "done and more");
    let messages = instance.messages().await.unwrap();
    let answers: Vec<_> = messages.iter().filter(|message| message.role() == goondan_core::Role::Tool).collect();
    let answers: Vec<_> = answers.iter().map(|message| message.text()).collect();
    assert_eq!(answers[0], r#"{"word":"rewritten","parts":1,"calls":1,"workdir":true,"agents":0}"#);
    assert_eq!(answers[1], format!(r#"{{"tool":"sdk__dynamic","turn":{}}}"#, result.turn_id().as_str().len()));
    assert_eq!(answers[2], r#"{"content":[{"type":"text","text":"plain JSON"}],"isError":true}"#);
    // What looks like a reply is JSON, since the library does not know replies.
    assert!(
        results(&messages).iter().all(|result| !result.is_error && !matches!(result.output, ToolOutput::Content(_)))
    );
    assert!(answers[3].contains("the tool failed") && answers[3].contains("do not call it"), "{}", answers[3]);
    assert_eq!(answers[4], "here");

    let states = instance.states().await.unwrap();
    let notes: Vec<String> = serde_json::from_value(states.into_values().next().unwrap()).unwrap();
    let recorded = [
        r#"A turn of assistant in user:1: ["hello"] ["user"]"#,
        "A step 0 with",
        "A call sdk__declared of step 0",
        "A sdk.said [String(\"rewritten\"), Number(1)]",
        "heard sdk.said",
        "dynamic {\"word\":\"rewritten\"}",
        "A Error Some(Some(\"E_SDK_TOOL\"))",
        "A \"done\" TextResponse",
    ];
    for expected in recorded {
        assert!(notes.iter().any(|note| note.starts_with(expected)), "{expected:?} is not in {notes:#?}");
    }
    instance.close().await.unwrap();
}

fn results(messages: &[Arc<Message>]) -> Vec<ToolResultPart> {
    let parts = messages.iter().flat_map(|message| message.content().parts().to_vec());
    let results = parts.filter_map(|part| if let Part::ToolResult(result) = part { Some(result) } else { None });
    results.collect()
}

/// The replies are made by the plugin in C, and seen by the middlewares of the old library.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#[tokio::test]
async fn a_library_built_from_the_sdk_of_0_1_0_sees_replies_as_text_and_as_errors() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frozen/sdk/libsdk.so");
    let library = Library::inspect(file).unwrap().load().unwrap();
    let failed = [("</svg>\\\"}]}}", "</svg>\\\"}]},\\\"isError\\\":true}")];
    for (name, replaced, status) in
        [("seen", &[][..], "Ok None"), ("failed", &failed, "Error Some(Some(\"E_TOOL_FAILED\"))")]
    {
        let plugin = Library::inspect(c::built(name, replaced)).unwrap().load().unwrap();
        let script = [ScriptItem::call("c__dot", json!({})), ScriptItem::say("done")];
        let agent = agent(script).described("c-plugin", plugin.extension(None).unwrap(), json!({}));
        let agent = agent.described("sdk", library.extension(None).unwrap(), json!({ "tag": "A" }));
        let instance = agent.build().unwrap().instance("user:1").await.unwrap();
        instance.run("hello").await.unwrap();
        let messages = instance.messages().await.unwrap();
        let [result] = &results(&messages)[..] else { panic!("{messages:?}") };
        let ToolOutput::Content(parts) = &result.output else { panic!("{result:?}") };
        assert_eq!((parts.len(), result.is_error), (2, status.starts_with("Error")));
        let states = instance.states().await.unwrap();
        let notes = states.values().map(ToString::to_string).collect::<String>();
        assert!(notes.contains(&json!(format!("A {status}")).to_string()), "{status}: {notes}");
        let seen = notes.contains(r#"[image/svg+xml dot.svg]"#);
        assert_eq!(seen, !result.is_error, "{notes}");
        instance.close().await.unwrap();
    }
}

/// A tool call and its result with parts, outputs and sources that version 1.0 does not have.
const LATER: [&str; 3] = [
    r#"{"id":"m0","data":{"role":"assistant","content":[
        {"type":"reasoning","text":"hm","provider":{"api":"a","model":"m","rest":{"s":1}}},
        {"type":"tool-call","toolCallId":"c0","toolName":"a__b","input":{}},
        {"type":"file","mediaType":"image/png","url":"data:image/png;base64,iVBORw=="}
    ]},"metadata":{},"createdAt":"2026-11-22T12:00:00.000Z","source":{"type":"oracle"}}"#,
    r#"{"id":"m1","data":{"role":"tool","content":[
        {"type":"tool-result","toolCallId":"c0","toolName":"a__b",
         "output":{"type":"content","value":[{"type":"text","text":"seen"}]}}
    ]},"metadata":{},"createdAt":"2026-11-22T12:00:00.000Z","source":{"type":"system"}}"#,
    r#"{"id":"m2","data":{"role":"tool","content":[
        {"type":"tool-result","toolCallId":"c9","toolName":"a__b","output":{"type":"hologram","of":1}}
    ]},"metadata":{},"createdAt":"2026-11-22T12:00:00.000Z","source":{"type":"system"}}"#,
];

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#[tokio::test]
async fn a_library_built_from_the_sdk_of_0_1_0_reads_and_rewrites_later_parts() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frozen/sdk/libsdk.so");
    let library = Library::inspect(file).unwrap().load().unwrap();
    for rewrite in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).unwrap();
        let id = InstanceId { agent: "assistant".parse().unwrap(), key: "user:1".parse().unwrap() };
        let messages = store.instance_dir(&id).join("messages");
        std::fs::create_dir_all(&messages).unwrap();
        let base: String = LATER.iter().map(|message| message.replace('\n', "") + "\n").collect();
        std::fs::write(messages.join("base.jsonl"), base).unwrap();

        let config = json!({ "tag": "A", "rewrite": rewrite });
        let agent = agent([ScriptItem::say("done")]).described("sdk", library.extension(None).unwrap(), config);
        let instance = agent.store(store).build().unwrap().instance("user:1").await.unwrap();
        assert_eq!(instance.run("hello").await.unwrap().text(), "done and more", "rewrite: {rewrite}");
        let messages = instance.messages().await.unwrap();
        assert_eq!(messages[0].metadata().contains_key("seen"), rewrite);
        let Part::Reasoning(part) = &messages[0].content().parts()[0] else { panic!("{:?}", messages[0]) };
        assert_eq!((part.text(), &part.provider().unwrap().rest()["s"]), ("hm", &json!(1)));
        assert!(messages[1].text().contains("seen") && messages[2].text().contains("hologram"));
        instance.close().await.unwrap();
    }
}

/// It reads and rewrites each message. The values in them are deeper than those that come in now, and up to deeper than
/// what it can read.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#[goondan_covers::covers("DEPTH-01")]
#[tokio::test]
async fn a_library_built_from_the_sdk_of_0_1_0_reads_values_that_an_earlier_version_stored() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frozen/sdk/libsdk.so");
    let library = Library::inspect(file).unwrap().load().unwrap();
    for levels in [65, 105, 122, 128, 2_000] {
        let dir = tempfile::tempdir().unwrap();
        let messages = dir.path().join("instances/assistant:one/messages");
        std::fs::create_dir_all(&messages).unwrap();
        let deep = format!("{}7{}", "[".repeat(levels), "]".repeat(levels));
        let base = format!(
            r#"{{"id":"a","data":{{"role":"user","content":[{{"type":"image","deep":{deep}}}]}},
                "metadata":{{"deep":{deep}}},"createdAt":"2026-01-31T12:00:00.000Z","source":{{"type":"user"}}}}"#
        );
        let base = base.replace('\n', "");
        std::fs::write(messages.join("base.jsonl"), base + "\n").unwrap();
        let script = [ScriptItem::say("done").repeat()];
        let config = json!({ "tag": "A", "rewrite": true });
        let agent = agent(script).described("sdk", library.extension(None).unwrap(), config);
        let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().unwrap();
        for _ in 0..2 {
            let instance = agent.instance("one").await.unwrap();
            assert_eq!(instance.run("hello").await.unwrap().text(), "done and more", "{levels}");
            let messages = instance.messages().await.unwrap();
            assert_eq!(messages[0].metadata()["seen"], true);
            instance.close().await.unwrap();
        }
    }
}
