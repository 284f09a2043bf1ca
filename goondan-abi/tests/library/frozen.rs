//! A library that was built against version 1.0 of the tables keeps working when entries are added (LINK-03).

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use goondan::store::FileStore;
use goondan_abi::{Library, Loaded, table};
use goondan_core::{Message, Part, Shown, ToolOutput, ToolResultPart};
use goondan_libraries::by_hand;
use goondan_runtime::{ScriptItem, TurnUpdate};
use serde_json::json;

use crate::support::{agent, library};

#[allow(dead_code, unreachable_pub, reason = "a copy of `src/table.rs`")]
#[path = "../frozen/1.0/table.rs"]
mod v1_0;

/// Asserts that every entry has its old offset, and that no table has shrunk.
macro_rules! unmoved {
    ($($table:ident { $($entry:ident)* })*) => {
        $(
            $(
                let (now, before) = (offset_of!(table::$table, $entry), offset_of!(v1_0::$table, $entry));
                assert_eq!(now, before, stringify!($table, $entry));
            )*
            assert!(size_of::<table::$table>() >= size_of::<v1_0::$table>());
        )*
    };
}

/// Asserts that types which are passed by value, or written by the other binary, have not grown.
macro_rules! same_size {
    ($($passed:ident)*) => {
        $(assert_eq!(size_of::<table::$passed>(), size_of::<v1_0::$passed>(), stringify!($passed));)*
    };
}

/// Asserts that numbers and texts mean what they meant.
macro_rules! same_value {
    ($($constant:ident)*) => { $(assert_eq!(table::$constant, v1_0::$constant);)* };
}

#[test]
fn the_entries_of_version_1_0_keep_their_offsets() {
    unmoved! {
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
            size abi_major abi_minor log_place log_enabled log_line secret_remember secret_forget
            extension_info extension_log extension_register extension_state extension_update_state
            extension_state_dir extension_shared_state extension_update_shared_state
             extension_subscribe extension_unsubscribe extension_emit extension_delegate
            extension_reload extension_release
            run_read run_write run_tool_catalog_revision run_message_count run_message_from run_message_before
            run_message_read run_message_metadata run_emit run_message_remove run_next run_request run_request_later
            run_send run_agents run_log run_progress result_read result_write result_release
        }
        Message { cursor next id role plain text }
        LogPlace { size name target file line level fields field_count }
        LogValue { kind bits text }
    }
    same_size! { Text Buffer Future Object Message LogValue }
    same_value! { DECLARATION_SYMBOL MAGIC ABI_MAJOR HANDLE REPLY }
    same_value! { OK FAILED PANICKED NONE PENDING TURN STEP TOOL_CALL TOOL SUBSCRIPTION CLEANUP BASE NOW }
}

/// Returns the hand-written library, compiled once for each `cfg`.
pub(crate) fn build(cfg: &'static str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    BUILT.lock().unwrap().entry(cfg).or_insert_with(|| by_hand(env!("CARGO_TARGET_TMPDIR"), cfg)).clone()
}

async fn works(library: Loaded) {
    let script = [ScriptItem::call("frozen__echo", json!({ "say": "it" })), ScriptItem::say("done")];
    let extension = library.extension(None).unwrap();
    let instance =
        agent(script).described_extension("old", extension, json!({})).build().unwrap().instance("one").await;
    let instance = instance.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "done");
    assert_eq!(instance.messages().await.unwrap()[2].text(), r#"{"say":"it"}"#);
    instance.close().await.unwrap();
}

#[tokio::test]
async fn a_library_that_was_built_against_version_1_0_works() {
    works(Library::inspect(build("plain")).unwrap().load().unwrap()).await;
}

#[tokio::test]
async fn a_library_that_was_built_against_version_1_0_uses_more_of_the_host() {
    let library = Library::inspect(build("more")).unwrap();
    assert_eq!(library.abi_version(), "1.0");
    let library = library.load().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let script = [ScriptItem::call("frozen__echo", json!({ "say": "it" })), ScriptItem::say("done")];
    let agent = agent(script).described_extension("old", library.extension(None).unwrap(), json!({}));
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
        known: table::HostTable1_3,
        added: extern "C" fn() -> u32,
    }

    extern "C" fn added() -> u32 {
        7
    }

    // SAFETY: A table consists of numbers and function pointers, which can be copied.
    let mut known = unsafe { std::ptr::read(goondan_abi::host_table()) };
    known.base.base.size = size_of::<Grown>();
    known.base.base.abi_minor += 1;
    let grown: &'static Grown = Box::leak(Box::new(Grown { known, added }));
    let library = Library::inspect(build("in_grown")).unwrap().load_with(&grown.known).unwrap();
    assert_eq!((grown.added)(), 7);
    works(library).await;
}

#[tokio::test]
async fn a_library_shows_something_in_a_host_that_can_and_works_in_one_of_version_1_0() {
    // SAFETY: A table consists of numbers and function pointers, which can be copied.
    let mut earlier = unsafe { std::ptr::read(goondan_abi::host_table()) };
    (earlier.base.base.size, earlier.base.base.abi_minor) = (size_of::<table::HostTable>(), 0);
    for (host, notes) in [(goondan_abi::host_table(), 1), (Box::leak(Box::new(earlier)), 0)] {
        let library = Library::inspect(library()).unwrap().load_with(host).unwrap();
        let script = [ScriptItem::call("showing__note", json!({})), ScriptItem::say("done")];
        let agent = agent(script).described_extension("teller", library.extension(Some("showing")).unwrap(), json!({}));
        let instance = agent.build().unwrap().instance("one").await.unwrap();
        let (mut turn, mut shown) = (instance.run_stream("hello"), Vec::new());
        while let Some(update) = turn.next().await {
            if let TurnUpdate::Shown(update) = update {
                shown.push((update.extension.to_string(), update.shown));
            }
        }
        assert_eq!(turn.finish().await.unwrap().text(), "done");
        assert_eq!(shown, vec![("teller".to_owned(), Shown::note("a note")); notes]);
        assert_eq!(instance.messages().await.unwrap()[2].text(), "shown");
        instance.close().await.unwrap();
    }
}

fn results(messages: &[Arc<Message>]) -> Vec<ToolResultPart> {
    let parts = messages.iter().flat_map(|message| message.content().parts().to_vec());
    let results = parts.filter_map(|part| if let Part::ToolResult(result) = part { Some(*result) } else { None });
    results.collect()
}
