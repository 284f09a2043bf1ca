//! Plays a conversation with a model of Anthropic, which calls its bash and its memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use bash::Bash;
use goondan::json;
use goondan::models::wire::Anthropic;
use goondan::models::{Cassette, ModelConfig, providers};
use goondan::testing::Chat;
use provider_tools::ProviderTools;

#[tokio::test]
async fn the_bash_and_the_memory_of_anthropic_are_called() {
    let cassette = Cassette::replay(Path::new(env!("CARGO_MANIFEST_DIR")).join("cassettes/main.jsonl")).unwrap();
    let model = ModelConfig::new("claude-sonnet-4-5").model(&providers::ANTHROPIC, Anthropic).unwrap();
    let chat = Chat::with::<Bash>(json!({})).with::<ProviderTools>(json!({}));
    let chat = chat.agent(|agent| agent.system("Answer in a few sentences."));
    let chat = chat.model(model.with_cassette(cassette.clone())).start().await.unwrap();
    let result = chat.say("What is the sum of 17 and 25? Remember it.").await.unwrap();
    assert_eq!(result.text(), "The sum is 42, and I have noted it.");
    let calls: Vec<_> = result.tool_calls().iter().map(|call| call.name.to_string()).collect();
    assert_eq!(calls, ["bash__exec", "bash__exec", "provider-tools__memory", "provider-tools__memory"]);
    // All requests were as recorded: with the tools as Anthropic defines them.
    cassette.finish().unwrap();
    let mut lines = chat.transcript().await;
    lines.retain(|line| line.starts_with("tool: "));
    let expected = [
        "tool: The shell has begun again.\n",
        "tool: 42\n",
        "tool: The path /memories/other.txt does not exist",
        "tool: File created successfully at: /memories/sum.txt",
    ];
    assert_eq!(lines, expected);
}
