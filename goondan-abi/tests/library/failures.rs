//! Failures, panics and retries of libraries.

use goondan_core::Error;
use goondan_runtime::ScriptItem;
use serde_json::json;

use crate::support::{Linkage, modes};

async fn fails(linkage: Linkage, mode: &str) -> Error {
    let agent = modes(linkage, json!({ "mode": mode }), [ScriptItem::say("hi")]).build().unwrap();
    match agent.instance("one").await {
        Ok(instance) => instance.run("hello").await.unwrap_err(),
        Err(error) => error,
    }
}

#[tokio::test]
async fn an_error_keeps_all_that_it_says() {
    let [linked, library] = [fails(Linkage::Linked, "fail").await, fails(Linkage::Library, "fail").await];
    assert_eq!(library.code(), "E_FIXTURE");
    assert_eq!(library.suggestion(), Some("try tea"));
    assert_eq!(library.part(), Some("step middleware `step`"));
    assert!(library.is_retryable());
    assert_eq!(library.report().to_string(), linked.report().to_string());
}

#[tokio::test]
async fn panics_become_errors_that_name_the_extension() {
    for mode in ["panic", "panic-late", "panic-in-init", "fail-in-init", "stash"] {
        let [linked, library] = [fails(Linkage::Linked, mode).await, fails(Linkage::Library, mode).await];
        assert_eq!(library.report().to_string(), linked.report().to_string(), "{mode}");
    }
}
