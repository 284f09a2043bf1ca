//! SIZE: what is too large takes no memory beyond what its maker takes.

use conformance_extensions::sizes::Sizes;
use goondan::agent::Policy;
use goondan::model::ScriptItem;
use goondan::store::{FileStore, Fsync};
use goondan_covers::{both_linkages, covers, interruptible};
use goondan_growth::{check, of_bytes};

use crate::linkage::{Extended, Linkage};
use crate::support::agent;

/// The limit, as far as the tests are concerned.
const LIMIT: usize = 256 << 10;

/// Runs `test` once for each of the tools, whose results are too large. What is measured besides them is the same turn
/// with a tool that makes as much, and returns next to nothing.
#[interruptible]
async fn results_of(tools: &[&str], test: &str) {
    for tool in tools {
        let test = format!("growth::{test}::{}", Linkage::of_case());
        check(
            &test,
            of_bytes(LIMIT),
            || (*tool).to_owned(),
            async |case| {
                let dir = tempfile::tempdir().unwrap();
                let mut policy = Policy::default();
                policy.max_result_bytes = u32::try_from(LIMIT).unwrap().try_into().unwrap();
                let wanted = goondan::json!({ "bytes": case.times * LIMIT, "returned": case.passed_on });
                let script = [ScriptItem::call(format!("sizes__{}", case.prepared), wanted), ScriptItem::say("done")];
                let agent = agent(script).with::<Sizes>(goondan::json!({})).policy(policy);
                let agent = agent.store(FileStore::open(dir.path()).unwrap().fsync(Fsync::Never)).build().unwrap();
                let instance = agent.instance("one").await.unwrap();
                case.begin();
                assert_eq!(instance.run("go").await.unwrap().text(), "done");
            },
        )
        .await;
    }
}

#[both_linkages]
#[covers("SIZE-01")]
async fn results_that_are_texts() {
    results_of(&["text", "string"], "results_that_are_texts").await;
}

#[both_linkages]
#[covers("SIZE-01")]
async fn results_that_are_values() {
    results_of(&["rows", "json", "parts"], "results_that_are_values").await;
}
