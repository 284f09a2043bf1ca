//! How long extensions may take to begin, and how they end together.

use conformance_extensions::cleanup::{Ending, Hanging};
use goondan::extension::Extension;
use goondan::{ErrorCode, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent};

#[both_linkages]
#[covers("LOAD-11")]
async fn extensions_clean_up_side_by_side() {
    let log = Log::new();
    let config = |tag: &str| json!({ "tag": tag, "log": log, "meets": true });
    let (extension, agent) = (Ending::DESCRIPTOR.name, agent([]));
    let agent = agent.with_named("a", extension, config("a")).with_named("b", extension, config("b")).build().unwrap();
    agent.instance("test").await.unwrap();
    agent.close().await.unwrap();
    let lines = log.take();
    assert_eq!(lines[..2], ["b begins to end", "a begins to end"], "neither could end alone");
    assert!(lines.contains(&"a has ended".to_owned()) && lines.contains(&"b has ended".to_owned()), "{lines:?}");
}

#[both_linkages]
#[covers("LOAD-11")]
async fn what_after_orders_cleans_up_in_order() {
    let log = Log::new();
    let config = |tag: &str, after: Option<&str>| json!({ "tag": tag, "log": log, "after": after });
    let (extension, agent) = (Ending::DESCRIPTOR.name, agent([]));
    let agent = agent.with_named("a", extension, config("a", None)).with_named("b", extension, config("b", Some("a")));
    let agent = agent.with_named("c", extension, config("c", Some("a?"))).build().unwrap();
    agent.instance("test").await.unwrap();
    agent.close().await.unwrap();
    let mut lines = log.take();
    assert_eq!(lines.split_off(4), ["a begins to end", "a has ended"], "both others come after it, and end before it");
    assert_eq!(lines[..2], ["c begins to end", "b begins to end"]);
}

#[both_linkages(start_paused = true)]
#[covers("TIME-01")]
async fn an_init_that_hangs_has_a_deadline() {
    let agent = agent([]).with::<Hanging>(json!({})).build().unwrap();
    let error = agent.instance("test").await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_INIT, "hanging"));
    assert!(error.report().to_string().contains("longer than 30s"), "{}", error.report());
}
