//! The key under which OpenAI caches the beginning of a conversation.

use goondan::Agent;
use goondan_models::wire::Responses;
use goondan_models::{ModelConfig, providers};
use serde_json::{Value, json};

use crate::support::{Recording, Reply, Server, config};

/// The key of a conversation, which names a person.
const PERSON: &str = "alice@example.com";

/// Returns the keys that are sent in one turn of each of these conversations.
async fn sent(server: &Server, config: ModelConfig, conversations: &[(&'static str, &str)]) -> Vec<Value> {
    let before = server.requests().len();
    for (agent, key) in conversations {
        let model = config.clone().model(&providers::OPENAI, Responses).unwrap();
        let agent = Agent::builder(*agent).model(model).build().unwrap();
        agent.instance(key).await.unwrap().run("hi").await.unwrap();
    }
    let requests = server.requests().split_off(before);
    requests.into_iter().map(|request| request.body["prompt_cache_key"].clone()).collect()
}

#[tokio::test]
async fn each_conversation_has_a_key_of_its_own_that_names_nobody() {
    let recordings = Recording::all("responses");
    let text = recordings.iter().find(|recording| recording.name == "text").unwrap().stream();
    let server = Server::start([Reply::events(&text)]).await;
    let config = config(server.url());
    let conversations = [("main", PERSON), ("main", PERSON), ("main", "other"), ("mai", "nalice@example.com")];
    let keys = sent(&server, config.clone(), &conversations).await;
    let texts: Vec<_> = keys.iter().map(|key| key.as_str().unwrap()).collect();
    assert_eq!(texts[0], texts[1], "the same in each process");
    assert!(texts[1] != texts[2] && texts[1] != texts[3] && texts[2] != texts[3], "{texts:?}");
    assert!(texts.iter().all(|key| key.len() == 16 && key.chars().all(|digit| digit.is_ascii_hexdigit())), "{texts:?}");
    assert!(server.requests().iter().all(|request| !request.body.to_string().contains("alice")));

    let with = |options: Value| {
        let mut config = config.clone();
        config.options = serde_json::from_value(options).unwrap();
        config
    };
    assert_eq!(sent(&server, with(json!({ "cache": "off" })), &[("main", PERSON)]).await, [Value::Null]);
    assert_eq!(sent(&server, with(json!({ "cache": "long" })), &[("main", PERSON)]).await, [keys[0].clone()]);
    let own = with(json!({ "provider": { "prompt_cache_key": "mine" } }));
    assert_eq!(sent(&server, own, &[("main", PERSON)]).await, ["mine"]);
}
