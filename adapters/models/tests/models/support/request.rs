//! The bodies of requests: sent to no server, and compared with those in `tests/requests`.

use std::fs;
use std::path::Path;

use goondan_core::{Result, ToolItem};
use goondan_models::Provider;
use goondan_models::wire::Wire;
use goondan_runtime::DeltaSink;
use serde_json::Value;

use super::{Asked, Played, Sent, config};

/// Returns the body of a request to the model `name`, which is answered with `answer`.
pub(crate) async fn sent_body<W: Wire>(
    provider: &Provider,
    wire: W,
    name: &str,
    answer: &str,
    asked: Asked,
) -> Result<Value> {
    let sent = Sent::to([Played::events(answer)]);
    let mut config = config("http://127.0.0.1:9");
    config.model = name.to_owned();
    asked.of(&config.model(provider, wire)?.with_transport(sent.clone()), DeltaSink::none()).await?;
    Ok(sent.bodies().remove(0))
}

/// Checks that each file of a folder in `tests/requests` has the body of its request. `body_of` returns the body for a
/// file and what it asks.
pub(crate) async fn requests_are_as_written_down(folder: &str, body_of: impl AsyncFn(&Value, Asked) -> Result<Value>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests").join(folder);
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let case: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let mut asked = Asked::messages(case["asked"]["messages"].clone());
        asked.system = case["asked"]["system"].as_str().map(|system| &*system.to_owned().leak());
        asked.tools = case["asked"]["tools"].as_array().into_iter().flatten().map(tool).collect();
        asked.options = case["asked"].get("options").map(|options| serde_json::from_value(options.clone()).unwrap());
        let body = body_of(&case, asked).await.unwrap();
        assert_eq!(body, case["body"], "{}: {body:#}", file.display());
    }
}

fn tool(item: &Value) -> ToolItem {
    let mut tool = ToolItem::new(item["name"].as_str().unwrap()).unwrap();
    tool.description = item["description"].as_str().map(str::to_owned);
    tool.parameters = item.get("parameters").cloned();
    tool
}
