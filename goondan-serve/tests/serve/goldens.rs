//! The events of both front ends for each row of the tables in docs/serving.md. `BLESS=1` writes them.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::prelude::*;
use goondan::{Agent, BoxFuture, Value, json};
use goondan_covers::covers;

use crate::support::{Served, Shop, events};

/// A model that answers in the way which the newest input names.
struct Ways;

const WAYS: [&str; 12] = [
    "pieces",
    "whole",
    "begins again",
    "arguments in pieces",
    "calls that were changed",
    "calls",
    "waits",
    "changed when it was stored",
    "progress",
    "cut",
    "refused",
    "fails",
];

impl Model for Ways {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        let messages: Vec<_> = request.messages().collect();
        let is_input = |text: &str| WAYS.contains(&text);
        let asked = messages.iter().rposition(|message| is_input(&message.content.text())).unwrap();
        let way = messages[asked].content.text().into_owned();
        let is_first = asked + 1 == messages.len();
        let text = |text| deltas.send(ModelDelta::Text { part: 0, text });
        let call = |id: &str, tool: &str| json!({ "id": id, "name": format!("shop__{tool}"), "args": {} });
        let answer = match way.as_str() {
            _ if !is_first => json!({ "text": "Done." }),
            "pieces" => {
                deltas.send(ModelDelta::Reasoning { part: 0, text: "A " });
                deltas.send(ModelDelta::Reasoning { part: 0, text: "greeting." });
                ["Hello", ", ", "you."].iter().for_each(|text| deltas.send(ModelDelta::Text { part: 1, text }));
                json!({ "content": [{ "type": "reasoning", "text": "A greeting." }, { "type": "text", "text": "Hello, you." }] })
            }
            "whole" => json!({ "content": [
                { "type": "reasoning", "text": "A picture." },
                { "type": "text", "text": "Here." },
                { "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo=" },
            ] }),
            "begins again" => {
                text("It sn");
                deltas.send(ModelDelta::Restart { reason: "the stream was cut", wait: Some(Duration::from_secs(1)) });
                ["It ", "rains."].into_iter().for_each(text);
                json!({ "text": "It rains." })
            }
            "arguments in pieces" | "calls that were changed" => {
                text("Let me see. ");
                deltas.send(ModelDelta::ToolCall { part: 1, id: "call-1", name: "shop__find" });
                ["{\"name\":", "\"a\"}"].iter().for_each(|json| deltas.send(ModelDelta::Arguments { part: 1, json }));
                let name = if way == "arguments in pieces" { "a" } else { "b" };
                json!({ "text": "Let me see. ", "toolCalls": [
                    { "id": "call-1", "name": "shop__find", "args": { "name": name } },
                ] })
            }
            "calls" => json!({ "toolCalls": [call("call-1", "look"), call("call-2", "none"), call("call-3", "fail")] }),
            "waits" => {
                json!({ "toolCalls": [call("call-1", "look"), call("call-2", "refund"), call("call-3", "work")] })
            }
            "progress" => json!({ "toolCalls": [call("call-1", "work")] }),
            "changed when it was stored" => {
                ["My number ", "is 555."].into_iter().for_each(text);
                json!({ "text": "My number is 555." })
            }
            "cut" => json!({ "text": "It", "finishReason": "length" }),
            "refused" => json!({ "text": "No.", "finishReason": "contentFilter" }),
            _ => return Box::pin(async { Err(Error::new("E_MODEL", "overloaded")) }),
        };
        Box::pin(async move { Ok(serde_json::from_value(answer)?) })
    }
}

/// An extension that changes an answer after it was stored.
struct More;

#[goondan::extension(name = "more")]
impl More {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn hide(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let result = next.run(ctx).await?;
        let newest = ctx.conversation().iter().last().unwrap();
        if newest.text().contains("555")
            && let Some(hidden) = newest.map_text(|text| text.replace("555", "hidden").into())
        {
            let target = newest.to_id();
            ctx.emit(MessageEvent::replace(target, hidden));
        }
        Ok(result)
    }
}

/// The text with a name of its own for each id, in the order in which they come.
fn named(text: &str) -> String {
    let mut names: HashMap<&str, String> = HashMap::new();
    let is_id = |word: &&str| word.len() >= 16 && word.chars().any(|c| c.is_ascii_digit());
    let words: Vec<_> = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_id).collect();
    for word in words {
        let name = format!("id{}", names.len() + 1);
        names.entry(word).or_insert(name);
    }
    names.into_iter().fold(text.to_owned(), |text, (id, name)| text.replace(id, &name))
}

async fn told(path: &str, body: impl Fn(&str) -> Value) -> String {
    let agent = Agent::builder("assistant").model(Ways).extension::<Shop>(json!({})).extension::<More>(json!({}));
    let served = Served::new(agent).await;
    let mut told = String::new();
    for way in WAYS {
        let url = format!("{}/v1/agents/assistant/{path}", served.url);
        let mut response = served.client.post(url).body(body(way).to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200, "{way}");
        told += &format!("# {way}\n");
        for event in events(&mut response, usize::MAX).await {
            told += &format!("{}\n", event.data);
        }
    }
    named(&told)
}

fn compare(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/goldens").join(name);
    if env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(path, now).unwrap();
    }
    let before = fs::read_to_string(&path).unwrap_or_default();
    assert!(before == now, "{} is not what is told; `BLESS=1` writes it:\n{now}", path.display());
}

#[tokio::test]
#[covers("SERVE-01", "ASK-01")]
async fn a_page_of_ai_sdk_is_told() {
    let told = told("ui", |way| {
        let message = json!({ "id": way, "role": "user", "parts": [{ "type": "text", "text": way }] });
        json!({ "id": way.replace(' ', "-"), "messages": [message] })
    });
    compare("ai-sdk.jsonl", &told.await);
}

#[tokio::test]
#[covers("SERVE-01", "ASK-01")]
async fn a_client_of_ag_ui_is_told() {
    let told = told("ag-ui", |way| {
        let thread = way.replace(' ', "-");
        json!({ "threadId": thread, "runId": "r", "messages": [{ "id": "m", "role": "user", "content": way }] })
    });
    compare("ag-ui.jsonl", &told.await);
}
