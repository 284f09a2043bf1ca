//! What the tools of a server are called, how they are called, and what they answer.

use goondan::json;
use goondan_covers::{both_linkages, covers};

use crate::support::{Odd, call, done, open, results, tools};

#[both_linkages]
#[covers("PATTERN-MCP-03", "PATTERN-MCP-04", "PATTERN-MCP-05")]
async fn the_tools_of_a_server_are_called_and_it_ends_with_the_conversation() {
    let odd = Odd::new();
    let script = [call("odd__echo", json!({ "text": "hello" })), done()];
    let (_agent, instance) = open(odd.config(&[]), script).await;
    assert_eq!(tools(&instance).await[..2], ["odd__echo", "odd__pid"]);
    let echo = instance.tools().await.unwrap().get("odd__echo").unwrap().clone();
    assert_eq!(echo.description.as_deref(), Some("Returns a text."));
    assert_eq!(echo.parameters.unwrap()["required"], json!(["text"]));
    instance.run("say hello").await.unwrap();
    assert_eq!(results(&instance).await, ["hello"]);
    assert_eq!(odd.running().len(), 1);
    instance.close().await.unwrap();
    assert_eq!((odd.starts(), odd.running()), (1, vec![]));
    assert_eq!(odd.log().last().unwrap(), "end of input", "it was not killed");
}
