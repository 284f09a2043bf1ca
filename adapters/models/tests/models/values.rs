//! VALUE-01: how each provider holds a model to the value that is expected.

use goondan::prelude::*;
use goondan::{Agent, Instance};
use goondan_models::wire::{Anthropic, Chat, Converse, Dialect, Gemini, Responses, Wire};
use goondan_models::{ModelConfig, Provider, providers};
use serde_json::{Value, json};

use crate::support::{Played, Sent, config};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Weather {
    city: String,
    wind: Option<f64>,
}

/// A value whose members have any name: no provider enforces its schema.
type Counts = std::collections::BTreeMap<String, u32>;

struct Looking;

#[goondan::extension(name = "looking")]
impl Looking {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Looks.
    #[tool(name = "looking__look", effect = read)]
    async fn look(&self) -> Result<String> {
        Ok("nothing".to_owned())
    }
}

const URL: &str = "https://models.test";

async fn instance<W: Wire>(config: ModelConfig, provider: &Provider, wire: W, tools: bool, sent: &Sent) -> Instance {
    let model = config.model(provider, wire).unwrap().with_transport(sent.clone());
    let agent = Agent::builder("assistant").model(model);
    let agent = if tools { agent.extension::<Looking>(json!({})) } else { agent };
    agent.build().unwrap().instance("test").await.unwrap()
}

fn of_model(name: &str) -> ModelConfig {
    let mut config = config(URL);
    config.model = name.to_owned();
    config
}

/// Returns the body of the request in which a value is expected.
async fn body<T: serde::de::DeserializeOwned + JsonSchema, W: Wire>(
    config: ModelConfig,
    provider: &Provider,
    wire: W,
    tools: bool,
) -> Value {
    let sent = Sent::to([Played::json(500, &json!({}))]);
    let asked = instance(config, provider, wire, tools, &sent).await.run_as::<T>("hello").await;
    assert!(asked.is_err(), "the provider is down");
    sent.bodies().remove(0)
}

fn closed() -> Value {
    json!({
        "title": "Weather", "type": "object", "required": ["city", "wind"], "additionalProperties": false,
        "properties": { "city": { "type": "string" }, "wind": { "type": ["number", "null"] } },
    })
}

/// Returns whether a tool of the runtime takes the value, and the name of a member that requires a tool.
fn has_tool(body: &Value) -> bool {
    body.to_string().contains("goondan__answer")
}

#[tokio::test]
async fn a_schema_that_can_be_enforced_is() {
    let chat = &providers::chat(&Dialect::OPENAI_COMPATIBLE);
    let wire = || Chat::new(Dialect::OPENAI_COMPATIBLE);
    let sent = body::<Weather, _>(of_model("m"), chat, wire(), false).await;
    let schema = json!({ "name": "answer", "schema": closed(), "strict": true });
    assert_eq!(sent["response_format"], json!({ "type": "json_schema", "json_schema": schema }));
    assert!(!has_tool(&sent), "{sent}");

    for tools in [false, true] {
        let sent = body::<Weather, _>(of_model("gpt-5"), &providers::OPENAI, Responses, tools).await;
        let format = json!({ "type": "json_schema", "name": "answer", "schema": closed(), "strict": true });
        assert_eq!((&sent["text"]["format"], has_tool(&sent)), (&format, false));

        let sent = body::<Weather, _>(of_model("claude-sonnet-4-5"), &providers::ANTHROPIC, Anthropic, tools).await;
        let format = json!({ "type": "json_schema", "schema": closed() });
        assert_eq!((&sent["output_config"]["format"], has_tool(&sent)), (&format, false));

        let sent = body::<Weather, _>(of_model("gemini-3-pro"), &providers::GEMINI, Gemini, tools).await;
        assert_eq!((&sent["generationConfig"]["responseJsonSchema"], has_tool(&sent)), (&closed(), false));
    }
}

#[tokio::test]
async fn elsewhere_a_call_is_required_if_it_can_be() {
    let chat = &providers::chat(&Dialect::OPENAI_COMPATIBLE);
    let wire = || Chat::new(Dialect::OPENAI_COMPATIBLE);
    for sent in [
        body::<Weather, _>(of_model("m"), chat, wire(), true).await,
        body::<Counts, _>(of_model("m"), chat, wire(), false).await,
        body::<Counts, _>(of_model("gpt-5"), &providers::OPENAI, Responses, true).await,
    ] {
        assert_eq!((&sent["tool_choice"], has_tool(&sent)), (&json!("required"), true));
        assert!(sent.get("response_format").is_none() && sent.get("text").is_none(), "{sent}");
    }
    let sent = body::<Weather, _>(of_model("claude-3-haiku"), &providers::ANTHROPIC, Anthropic, false).await;
    assert_eq!((&sent["tool_choice"]["type"], has_tool(&sent)), (&json!("any"), true));
    let sent = body::<Weather, _>(of_model("gemini-2.5-flash"), &providers::GEMINI, Gemini, true).await;
    let choice = &sent["toolConfig"]["functionCallingConfig"]["mode"];
    assert_eq!((choice, has_tool(&sent)), (&json!("ANY"), true));
    let bedrock = || {
        let mut config = of_model("anthropic.claude-sonnet-4-5");
        config.region = Some("eu-central-1".to_owned());
        config
    };
    let sent = body::<Weather, _>(bedrock(), &providers::BEDROCK, Converse, false).await;
    assert_eq!((&sent["toolConfig"]["toolChoice"], has_tool(&sent)), (&json!({ "any": {} }), true));

    let mut thinking = of_model("claude-3-7-sonnet");
    thinking.options.reasoning.budget_tokens = std::num::NonZeroU32::new(2048);
    let sent = body::<Weather, _>(thinking, &providers::ANTHROPIC, Anthropic, false).await;
    assert!(sent.get("tool_choice").is_none() && has_tool(&sent), "a model that thinks is offered the tool: {sent}");
    let mut chosen = of_model("gpt-5");
    chosen.options.tool_choice = Some(goondan::middleware::ToolChoice::None);
    let sent = body::<Weather, _>(chosen, &providers::OPENAI, Responses, false).await;
    assert_eq!((sent["tool_choice"].as_str(), sent.get("text")), (Some("none"), None), "what was chosen stays");
}

#[tokio::test]
async fn a_schema_that_the_provider_refuses_is_left_out_and_the_answer_checked() {
    let say = |text: &str| {
        let delta = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
        Played::events(&format!("data: {delta}\n\ndata: [DONE]\n\n"))
    };
    let refused =
        json!({ "error": { "message": "response_format is not supported", "type": "invalid_request_error" } });
    let good = say(r#"{"city":"Lisbon","wind":null}"#);
    let sent = Sent::to([Played::json(400, &refused), say("It is calm."), good]);
    let chat = &providers::chat(&Dialect::OPENAI_COMPATIBLE);
    let instance = instance(of_model("m"), chat, Chat::new(Dialect::OPENAI_COMPATIBLE), false, &sent).await;
    let weather: Weather = instance.run_as("hello").await.unwrap();
    assert_eq!(weather, Weather { city: "Lisbon".to_owned(), wind: None });
    let bodies = sent.bodies();
    let formats: Vec<_> = bodies.iter().map(|body| body.get("response_format").is_some()).collect();
    assert_eq!(formats, [true, false, false]);
    assert!(bodies[2].to_string().contains("It is calm."), "the attempt is in the next request");
}
