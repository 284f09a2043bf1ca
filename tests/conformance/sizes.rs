//! SIZE: what is too large is told, and is in no conversation.

use std::fs;
use std::path::{Path, PathBuf};

use conformance_extensions::sizes::Sizes;
use goondan::agent::{AgentBuilder, Policy};
use goondan::conversation::{Message, Part, ToolOutput};
use goondan::model::{ModelResponse, ScriptItem};
use goondan::prelude::*;
use goondan::store::{FileStore, Fsync, InstanceId};
use goondan::{Instance, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent};

/// The limit of these tests.
const LIMIT: u32 = 20_000;

fn policy() -> Policy {
    let mut policy = Policy::default();
    policy.max_result_bytes = LIMIT.try_into().unwrap();
    policy
}

/// Describes an agent that calls `tool` once.
fn calling(tool: &str, bytes: usize, config: Value) -> AgentBuilder {
    let call = ScriptItem::call(format!("sizes__{tool}"), json!({ "bytes": bytes, "returned": true }));
    agent([call, ScriptItem::say("done")]).with::<Sizes>(config).policy(policy())
}

/// Returns the directory of the conversation `one` in a store.
fn directory(store: &Path) -> PathBuf {
    let id = InstanceId { agent: "assistant".parse().unwrap(), key: "one".parse().unwrap() };
    FileStore::open(store).unwrap().instance_dir(&id)
}

/// Returns the message with the result of the only call.
async fn result(instance: &Instance) -> Message {
    let messages = instance.messages().await.unwrap();
    let result = messages.iter().find(|message| message.role() == Role::Tool);
    (**result.unwrap()).clone()
}

/// Returns the file that a text names.
fn named_file(text: &str) -> PathBuf {
    let (_, rest) = text.split_once(" in the file ").unwrap();
    rest.split_once(": read").map_or(rest.trim_end_matches('.'), |(path, _)| path).into()
}

/// Returns the size of the largest file below a directory.
fn largest(directory: &Path) -> u64 {
    let sizes = fs::read_dir(directory).unwrap().map(|entry| {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() { largest(&entry.path()) } else { entry.metadata().unwrap().len() }
    });
    sizes.max().unwrap_or_default()
}

#[both_linkages]
#[covers("SIZE-01")]
async fn all_of_a_large_result_is_in_a_file_and_the_model_reads_an_excerpt() {
    for tool in ["text", "string", "slowly", "rows", "json", "parts"] {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).unwrap().fsync(Fsync::Never);
        let agent = calling(tool, 10 * LIMIT as usize, json!({})).store(store).build().unwrap();
        let instance = agent.instance("one").await.unwrap();
        assert_eq!(instance.run("go").await.unwrap().text(), "done");

        let result = result(&instance).await;
        let text = result.text();
        assert!((LIMIT as usize / 5..LIMIT as usize / 2).contains(&text.len()), "{tool}: {} bytes", text.len());
        assert_eq!(text.matches(" characters are left out here").count(), 1, "{tool}: {text}");
        let file = named_file(&text);
        assert!(file.starts_with(dir.path()) && file.to_string_lossy().contains(tool), "{tool}: {}", file.display());
        let whole = fs::read_to_string(&file).unwrap();
        assert!(whole.len() >= 10 * LIMIT as usize, "{tool}: {} bytes", whole.len());
        let (head, tail) = (text.split_once("\n[").unwrap().0, text.rsplit_once("]\n").unwrap().1);
        assert!(whole.starts_with(head) && whole.ends_with(tail), "{tool}: {text}");
        let read = serde_json::from_str::<Value>(&whole);
        assert_eq!(read.is_ok(), ["rows", "json"].contains(&tool), "{tool}: JSON can be read from its file");
        let parts = result.content().parts().to_owned();
        let is_error = matches!(&parts[0], Part::ToolResult(result) if result.is_error);
        assert_eq!(is_error, tool == "parts", "a tool that failed has failed");
        let base = directory(dir.path()).join("messages");
        assert!(largest(&base) < u64::from(LIMIT), "{tool}: {} bytes", largest(&base));
    }
}

#[both_linkages]
#[covers("SIZE-01")]
async fn the_output_files_of_a_conversation_have_a_quota() {
    let quota = 500_000_u32;
    let call = |_| ScriptItem::call("sizes__text", json!({ "bytes": 10 * LIMIT, "returned": true }));
    let script: Vec<_> = (0..10).map(call).chain([ScriptItem::say("done").repeat()]).collect();
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).unwrap().fsync(Fsync::Never);
    let mut policy = policy();
    policy.max_output_bytes = quota.try_into().unwrap();
    let agent = agent(script).with::<Sizes>(json!({})).policy(policy).store(store).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    assert_eq!(instance.run("go").await.unwrap().text(), "done");

    let messages = instance.messages().await.unwrap();
    let results: Vec<_> = messages.iter().filter(|message| message.role() == Role::Tool).collect();
    let has = |text: &str| results.iter().filter(|result| result.text().contains(text)).count();
    assert_eq!(has("The whole text is in the file "), 2, "{results:?}");
    assert_eq!(has("The first 99992 bytes"), 1, "a part of the third: {results:?}");
    assert_eq!(has("may have 500000 (`policy.maxOutputBytes`); delete those that are no longer needed"), 7);
    let files = fs::read_dir(directory(dir.path()).join("workspace")).unwrap();
    let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(bytes, u64::from(quota));
}

#[both_linkages]
#[covers("SIZE-01")]
async fn a_result_within_the_limit_stays_as_it_is() {
    for tool in ["text", "string", "slowly", "rows", "json", "parts"] {
        let agent = calling(tool, LIMIT as usize / 2, json!({})).build().unwrap();
        let instance = agent.instance("one").await.unwrap();
        instance.run("go").await.unwrap();
        let text = result(&instance).await.text().into_owned();
        assert!(text.len() >= LIMIT as usize / 2 && !text.contains("left out"), "{tool}: {text}");
    }
}

#[both_linkages]
#[covers("SIZE-01")]
async fn the_files_of_a_result_are_limited_together() {
    let agent = calling("files", 28 << 20, json!({})).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    instance.run("go").await.unwrap();
    let result = result(&instance).await;
    let parts = result.content().parts().to_owned();
    let Part::ToolResult(result) = &parts[0] else { panic!("{parts:?}") };
    let ToolOutput::Content(parts) = &result.output else { panic!("{result:?}") };
    let files = parts.iter().filter(|part| matches!(part, Part::File(_))).count();
    assert_eq!((parts.len(), files), (7, 4), "20 MB, and some for each file");
    let Part::Text(left_out) = &parts[6] else { panic!("{:?}", parts[6]) };
    assert!(left_out.text.starts_with("[application/octet-stream] is left out"), "{}", left_out.text);
    assert_eq!(fs::read(named_file(&left_out.text)).unwrap(), vec![7; 4 << 20]);
}

#[both_linkages]
#[covers("SIZE-01")]
async fn the_results_of_one_answer_are_limited_together() {
    let wanted = json!({ "bytes": LIMIT * 3 / 4, "returned": true });
    let call = |at: u32| json!({ "id": format!("c{at}"), "name": "sizes__text", "args": wanted });
    for (calls, cut) in [(8, false), (16, true), (100, true)] {
        let calls: Vec<_> = (0..calls).map(call).collect();
        let calls = ScriptItem::raw(serde_json::from_value::<ModelResponse>(json!({ "toolCalls": calls })).unwrap());
        let agent = agent([calls, ScriptItem::say("done")]).with::<Sizes>(json!({})).policy(policy()).build().unwrap();
        let instance = agent.instance("one").await.unwrap();
        instance.run("go").await.unwrap();
        let messages = instance.messages().await.unwrap();
        let results = messages.iter().filter(|message| message.role() == Role::Tool);
        let sizes: Vec<_> =
            results.map(|message| (message.text().len(), message.text().contains("left out"))).collect();
        assert!(sizes.iter().map(|(bytes, _)| bytes).sum::<usize>() <= 8 * LIMIT as usize, "{sizes:?}");
        assert!(sizes.iter().all(|(_, is_cut)| *is_cut == cut), "{sizes:?}");
    }
}

#[both_linkages]
#[covers("SIZE-01")]
async fn what_a_layer_makes_of_a_result_has_the_same_limit() {
    for change in ["result", "error"] {
        let agent = calling("text", 10 * LIMIT as usize, json!({ "change": change })).build().unwrap();
        let instance = agent.instance("one").await.unwrap();
        instance.run("go").await.unwrap();
        let text = result(&instance).await.text().into_owned();
        assert!(text.len() < LIMIT as usize / 2, "{change}: {} bytes", text.len());
        assert_eq!(text.contains("left out here"), change == "result", "{text}");
        assert_eq!(text.starts_with("error E_OWN: a line"), change == "error", "{text}");
    }
}

#[both_linkages]
#[covers("SIZE-01")]
async fn without_a_directory_the_rest_is_lost_and_the_model_reads_why() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).unwrap().fsync(Fsync::Never);
    let agent = calling("text", 10 * LIMIT as usize, json!({})).store(store).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    fs::write(directory(dir.path()).join("workspace"), "a file in its place").unwrap();
    instance.run("go").await.unwrap();
    let text = result(&instance).await.text().into_owned();
    assert!(text.contains("are lost: cannot make the work directory"), "{text}");
    assert!(text.len() < LIMIT as usize / 2, "{} bytes", text.len());
}

#[both_linkages]
#[covers("SIZE-01")]
async fn arguments_that_are_too_large_are_refused() {
    // By a layer.
    let agent = calling("text", 5 << 20, json!({ "change": "args" })).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    assert_eq!(instance.run("go").await.unwrap().text(), "done");
    let text = result(&instance).await.text().into_owned();
    assert!(text.starts_with("error E_TOOL_INVALID_ARGS: the arguments of a tool call have 4 MB at most"), "{text}");

    // By the model, which is told and answers again.
    let call = ScriptItem::call("sizes__text", json!({ "bytes": 1, "returned": true, "more": "x".repeat(5 << 20) }));
    let agent = super::support::agent([call, ScriptItem::say("less")]).with::<Sizes>(json!({})).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    assert_eq!(instance.run("go").await.unwrap().text(), "less");
    let messages = instance.messages().await.unwrap();
    assert!(messages.iter().all(|message| message.text().len() < 1000));
    assert!(messages[1].text().contains("the arguments of a tool call have 4 MB at most"), "{:?}", messages[1]);
}

#[both_linkages]
#[covers("SIZE-01")]
async fn not_all_calls_that_only_read_run_at_once() {
    for (most, expected) in [(None, 16), (Some(3), 3), (Some(1), 1)] {
        let log = Log::new();
        let calls: Vec<_> =
            (0..40).map(|at| json!({ "id": format!("c{at}"), "name": "sizes__wait", "args": {} })).collect();
        let calls = ScriptItem::raw(serde_json::from_value::<ModelResponse>(json!({ "toolCalls": calls })).unwrap());
        let mut policy = Policy::default();
        if let Some(most) = most {
            policy.max_parallel_calls = u32::try_from(most).unwrap().try_into().unwrap();
        }
        let agent = agent([calls, ScriptItem::say("done")]).with::<Sizes>(log.config()).policy(policy).build().unwrap();
        let turn = agent.instance("one").await.unwrap().run("go").await.unwrap();
        assert_eq!(turn.tool_calls().len(), 40);
        let (mut running, mut peak) = (0, 0);
        for line in log.take() {
            if line == "begun" {
                running += 1
            } else {
                running -= 1
            }
            peak = peak.max(running);
        }
        assert_eq!((running, peak), (0, expected));
    }
}
