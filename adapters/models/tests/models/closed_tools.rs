//! CACHE-01: tools that layers have taken out of a step, which OpenAI is sent and told not to call.

use goondan::Agent;
use goondan::agent::TurnUpdate;
use goondan::event::RuntimeEvent;
use goondan::prelude::*;
use goondan_core::{ErrorCode, ProviderTool, ToolItem};
use goondan_models::wire::{Anthropic, Chat, Dialect, Gemini, Responses, Wire};
use goondan_models::{HttpModel, Provider, providers};
use goondan_runtime::DeltaSink;
use serde_json::{Value, json};

use crate::support::{Asked, Played, Sent, config, told};

const OPENAI: &str = "https://api.openai.com/v1";
const DIALECT: Dialect = Dialect::OPENAI_COMPATIBLE;

const RESPONSES: &str = "data: {\"type\":\"response.created\",\"response\":{}}\n\n\
                         data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
const SAID: &str = concat!(
    "data: {\"type\":\"response.created\",\"response\":{}}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,",
    "\"delta\":\"yes\"}\n\n",
    "data: {\"type\":\"response.completed\",\"response\":{}}\n\n",
);
const CHAT: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"yes\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn tool(name: &str) -> ToolItem {
    ToolItem::new(name).unwrap()
}

/// A step that registered `a__x`, `b__x` and `c__x`, and whose layers have left `c__x`, described it, and added `d__x`.
fn asked() -> Asked {
    Asked {
        tools: vec![tool("d__x"), tool("c__x").describe("Does c.")],
        registered: ["a__x", "b__x", "c__x"].map(tool).into(),
        ..Asked::default()
    }
}

fn model<W: Wire>(provider: &Provider, wire: W, url: &str, sent: &Sent) -> HttpModel<W> {
    config(url).model(provider, wire).unwrap().with_transport(sent.clone())
}

async fn body<W: Wire>(provider: &Provider, wire: W, url: &str, answer: &str, asked: &Asked) -> Result<Value> {
    let sent = Sent::to([Played::events(answer)]);
    asked.of(&model(provider, wire, url, &sent), DeltaSink::none()).await?;
    Ok(sent.bodies().remove(0))
}

async fn responses(url: &str, asked: &Asked) -> Value {
    body(&providers::OPENAI, Responses, url, RESPONSES, asked).await.unwrap()
}

async fn chat(url: &str, asked: &Asked) -> Value {
    body(&providers::chat(&DIALECT), Chat::new(DIALECT), url, CHAT, asked).await.unwrap()
}

/// Returns the names of the tools of a body.
fn names(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools
        .iter()
        .filter_map(|tool| {
            [&tool["name"], &tool["function"]["name"], &tool["type"]].into_iter().find_map(|name| name.as_str())
        })
        .collect()
}

#[tokio::test]
async fn openai_is_sent_all_tools_and_told_which_may_be_called() {
    let of_responses = responses(OPENAI, &asked()).await;
    assert_eq!(names(&of_responses), ["a__x", "b__x", "c__x", "d__x"], "in the order of the catalog");
    assert_eq!(of_responses["tools"][2]["description"], "Does c.", "as layers have left it");
    let function = |name| json!({ "type": "function", "name": name });
    let allowed = json!({ "type": "allowed_tools", "mode": "auto", "tools": [function("d__x"), function("c__x")] });
    assert_eq!(of_responses["tool_choice"], allowed);

    let of_chat = chat(OPENAI, &asked()).await;
    assert_eq!(names(&of_chat), ["a__x", "b__x", "c__x", "d__x"]);
    let function = |name| json!({ "type": "function", "function": { "name": name } });
    let allowed = json!({ "mode": "auto", "tools": [function("d__x"), function("c__x")] });
    assert_eq!(of_chat["tool_choice"], json!({ "type": "allowed_tools", "allowed_tools": allowed }));
}

#[tokio::test]
async fn an_opening_changes_only_the_choice() {
    let closed = asked();
    let opened = Asked { tools: [closed.tools.clone(), vec![tool("a__x")]].concat(), ..closed.clone() };
    let all = Asked { tools: [opened.tools.clone(), vec![tool("b__x")]].concat(), ..closed.clone() };
    for (first, second, third) in [
        (responses(OPENAI, &closed).await, responses(OPENAI, &opened).await, responses(OPENAI, &all).await),
        (chat(OPENAI, &closed).await, chat(OPENAI, &opened).await, chat(OPENAI, &all).await),
    ] {
        assert_ne!(first["tool_choice"], second["tool_choice"]);
        assert_eq!(third["tool_choice"], Value::Null, "nothing is closed");
        for mut body in [second, third] {
            body["tool_choice"] = first["tool_choice"].clone();
            assert_eq!(body, first);
        }
    }
}

#[tokio::test]
async fn other_hosts_are_sent_the_tools_of_the_step() {
    for url in ["http://127.0.0.1:9", "https://mine.openai.azure.com/v1", "https://api.openai.com.example/v1"] {
        for body in [responses(url, &asked()).await, chat(url, &asked()).await] {
            assert_eq!(names(&body), ["d__x", "c__x"], "{url}");
            assert_eq!(body["tool_choice"], Value::Null, "{url}");
        }
    }
    let anthropic = concat!(
        "data: {\"type\":\"message_start\",\"message\":{}}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\n",
    );
    let url = "https://api.anthropic.com";
    let of_anthropic = body(&providers::ANTHROPIC, Anthropic, url, anthropic, &asked()).await.unwrap();
    assert_eq!(names(&of_anthropic), ["d__x", "c__x"]);
    let gemini =
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"yes\"}]},\"finishReason\":\"STOP\"}]}\n\n";
    let url = "https://generativelanguage.googleapis.com";
    let of_gemini = body(&providers::GEMINI, Gemini, url, gemini, &asked()).await.unwrap();
    assert_eq!(of_gemini["tools"][0]["functionDeclarations"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_choice_of_the_options_stays() {
    let function = |name| json!({ "type": "function", "name": name });
    let both = [function("d__x"), function("c__x")];
    let search = json!({ "type": "web_search", "search_context_size": "low" });
    let server = json!({ "type": "mcp", "server_label": "wiki", "server_url": "https://example.com" });
    let allowed = |mode: &str, tools: &[Value]| json!({ "type": "allowed_tools", "mode": mode, "tools": tools });
    for (options, expected) in [
        (json!({ "toolChoice": "auto" }), allowed("auto", &both)),
        (json!({ "toolChoice": "required" }), allowed("required", &both)),
        (json!({ "toolChoice": "none" }), json!("none")),
        (json!({ "toolChoice": { "tool": "c__x" } }), function("c__x")),
        (
            json!({ "provider": { "tools": [search, server] } }),
            allowed(
                "auto",
                &[&[json!({ "type": "web_search" }), json!({ "type": "mcp", "server_label": "wiki" })], &both[..]]
                    .concat(),
            ),
        ),
    ] {
        let body = responses(OPENAI, &asked().options(options.clone())).await;
        assert_eq!(body["tool_choice"], expected, "{options}");
        assert!(names(&body).ends_with(&["a__x", "b__x", "c__x", "d__x"]), "{options}");
    }
    for options in [
        // What the list cannot name, and a choice of one's own.
        json!({ "provider": { "tools": [{ "type": "tool_search" }] } }),
        json!({ "provider": { "tool_choice": "required" } }),
    ] {
        let body = responses(OPENAI, &asked().options(options.clone())).await;
        assert!(names(&body).ends_with(&["d__x", "c__x"]) && !names(&body).contains(&"a__x"), "{options}");
        assert_ne!(body["tool_choice"]["type"], "allowed_tools");
    }
    let nothing_open = || Asked { tools: Vec::new(), ..asked() };
    for body in [responses(OPENAI, &nothing_open()).await, chat(OPENAI, &nothing_open()).await] {
        assert_eq!((names(&body).len(), &body["tool_choice"]), (3, &json!("none")));
    }
    for choice in [json!("required"), json!({ "tool": "a__x" })] {
        let asked = nothing_open().options(json!({ "toolChoice": choice }));
        let refused = body(&providers::OPENAI, Responses, OPENAI, RESPONSES, &asked).await.unwrap_err();
        assert_eq!(*refused.code(), ErrorCode::MODEL_OPTION, "{choice}: a closed tool is not offered");
    }
}

#[tokio::test]
async fn more_tools_than_openai_takes_are_not_sent() {
    for (registered, sent) in [(127, 128), (128, 2)] {
        let registered = (0..registered).map(|at| tool(&format!("t__{at}"))).collect();
        let asked = Asked { tools: vec![tool("t__5"), tool("d__x")], registered, ..Asked::default() };
        assert_eq!(names(&responses(OPENAI, &asked).await).len(), sent);
        assert_eq!(names(&chat(OPENAI, &asked).await).len(), sent);
    }
}

#[tokio::test]
async fn a_call_of_a_closed_tool_of_the_provider_has_the_name_of_the_tool() {
    let item = json!({
        "type": "shell_call", "id": "sh_1", "call_id": "call_1", "status": "completed",
        "action": { "commands": ["ls"] },
    });
    let events = [
        json!({ "type": "response.created", "response": {} }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": {} }),
    ];
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let shell = tool("terminal__run").provider_tool(ProviderTool::openai("shell"));
    let asked = Asked { registered: vec![shell], ..asked() };
    for (url, name) in [(OPENAI, "terminal__run"), ("http://127.0.0.1:9", "shell")] {
        let sent = Sent::to([Played::events(&events)]);
        let (answer, _) = told(&model(&providers::OPENAI, Responses, url, &sent), &asked).await;
        let called: Vec<_> = answer.unwrap().calls().map(|call| call.tool_name.clone()).collect();
        assert_eq!(called.first().map_or("shell", |name| &**name), name);
        assert_eq!(sent.bodies()[0]["tools"][0]["type"] == "shell", url == OPENAI);
    }
}

#[tokio::test]
async fn a_model_that_does_not_know_the_choice_is_asked_without_it() {
    let message = "Invalid value: 'allowed_tools'. Supported values are: 'none', 'auto', and 'required'.";
    let refusal = json!({ "error": { "message": message, "type": "invalid_request_error", "param": "tool_choice" } });
    let sent = Sent::to([Played::json(400, &refusal), Played::events(RESPONSES)]);
    let model = model(&providers::OPENAI, Responses, OPENAI, &sent);
    for _ in 0..2 {
        asked().of(&model, DeltaSink::none()).await.unwrap();
    }
    let bodies = sent.bodies();
    assert_eq!(bodies.iter().map(|body| names(body).len()).collect::<Vec<_>>(), [4, 2, 2], "it is remembered");
    assert_eq!(bodies[1]["tool_choice"], Value::Null);
}

/// Offers `docs__b` in each other turn.
struct Docs;

#[goondan::extension(name = "docs")]
impl Docs {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Says nothing.
    #[tool(name = "docs__a", effect = read)]
    async fn a(&self) -> Result<()> {
        Ok(())
    }

    /// Says nothing.
    #[tool(name = "docs__b", effect = read)]
    async fn b(&self) -> Result<()> {
        Ok(())
    }

    #[middleware(step)]
    async fn close(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if ctx.input().input.as_deref() == Some("close") {
            ctx.tool_catalog_mut().retain(|tool| tool.name.as_str() != "docs__b");
        }
        next.run(ctx).await
    }
}

/// Returns the shares of requests that were kept in turns of a conversation, and the bodies.
async fn kept(url: &str) -> (Vec<f64>, Vec<Value>) {
    let sent = Sent::to([Played::events(SAID)]);
    let model = model(&providers::OPENAI, Responses, url, &sent);
    let agent =
        Agent::builder("assistant").model(model).system("Be brief.").extension::<Docs>(json!({})).build().unwrap();
    let (instance, mut shares) = (agent.instance("test").await.unwrap(), Vec::new());
    for input in ["open", "close", "close", "open"] {
        let mut turn = instance.run_stream(input);
        while let Some(update) = turn.next().await {
            let TurnUpdate::Event(event) = update else { continue };
            if let RuntimeEvent::StepCompleted { kept_prefix: Some(kept), .. } = &*event {
                shares.push(kept.share());
            }
        }
        turn.finish().await.unwrap();
    }
    (shares, sent.bodies())
}

#[tokio::test]
async fn the_cache_of_openai_keeps_all_over_an_opening() {
    let (shares, bodies) = kept(OPENAI).await;
    assert_eq!(shares, [1.0; 3]);
    assert!(bodies.iter().all(|body| body["tools"] == bodies[0]["tools"]));
    let (shares, bodies) = kept("http://127.0.0.1:9").await;
    assert!(shares[0] < 1.0 && shares[1] == 1.0 && shares[2] < 1.0, "{shares:?}");
    assert_ne!(bodies[0]["tools"], bodies[1]["tools"]);
}
