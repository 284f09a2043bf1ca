//! Files that a model does not take, as its config says.

use goondan_models::providers;
use goondan_models::wire::Anthropic;
use serde_json::{Value, json};

use crate::support::{Asked, Played, Sent, call, config, result};

const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";
const PDF: &str = "data:application/pdf;base64,JVBERi0=";

fn file(media_type: &str, url: &str) -> Value {
    json!({ "type": "file", "mediaType": media_type, "url": url })
}

/// Returns the messages of a request with two files of the user and one of a tool.
async fn sent(accepts: Option<&[&str]>) -> String {
    let content = json!({ "type": "content", "value": [file("image/png", PNG)] });
    let asked = Asked::messages(json!([
        { "role": "user", "content": [file("image/png", PNG), file("application/pdf", PDF)] },
        { "role": "assistant", "content": [call("1", json!({}), None)] },
        result("1", content),
    ]));
    let mut config = config("http://127.0.0.1:9");
    config.accepts = accepts.map(|accepts| accepts.iter().map(|accepted| (*accepted).to_owned()).collect());
    let answer = "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let sent = Sent::to([Played::events(answer)]);
    let model = config.model(&providers::ANTHROPIC, Anthropic).unwrap().with_transport(sent.clone());
    asked.of(&model, goondan_runtime::DeltaSink::none()).await.unwrap();
    sent.bodies()[0]["messages"].to_string()
}

#[tokio::test]
async fn a_model_is_sent_the_files_that_it_takes_and_the_names_of_others() {
    let unread = "[A file of the type image/png is not shown: this model cannot read it.]";
    let count = |sent: &str| (sent.matches(unread).count(), sent.matches("iVBORw0KGgo=").count());
    assert_eq!(count(&sent(None).await), (0, 2));
    assert_eq!(count(&sent(Some(&["image/*"])).await), (0, 2));
    let without = sent(Some(&["application/pdf"])).await;
    assert_eq!(count(&without), (2, 0), "also in the result of a tool");
}
