//! What agents call: values from the environment, recorded requests, reloads, and one of several models.

use std::fs;

use goondan::prelude::{Next, Result, Step, StepContext, StepResult};
use goondan::store::MemoryStore;
use goondan_bundle::{Bundle, KnownExtension};
use goondan_covers::covers;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::support::{AGENT, bundle_of, model};

/// Chooses the model that the setting names.
struct Choice {
    model: String,
}

#[derive(Deserialize, JsonSchema)]
struct ChoiceConfig {
    model: String,
}

#[goondan::extension(name = "choice")]
impl Choice {
    #[init]
    fn new(config: ChoiceConfig) -> Self {
        Self { model: config.model }
    }

    #[middleware(step)]
    async fn choose(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.set_model(self.model.as_str());
        next.run(ctx).await
    }
}

#[tokio::test]
#[covers("API-11")]
async fn values_from_the_environment_are_filled_in_checked_and_masked() {
    let from = "{ valueFrom: { env: CARGO_PKG_NAME } }";
    let build = async |spec: &str| {
        let directory = bundle_of(&(model("main", spec) + AGENT));
        let agents = Bundle::load(directory.path()).unwrap().build(MemoryStore::new()).await;
        (directory, agents)
    };
    let (_directory, agents) = build(&format!("{{ provider: echo, prefix: '> ', key: {from} }}")).await;
    let agents = agents.unwrap();
    let answer = agents.get("main").unwrap().instance("a").await.unwrap().run("hi").await.unwrap();
    assert_eq!(answer.text(), format!("> main:{}", "goondan-bundle".len()));
    assert_eq!(goondan::secret::mask("the crate goondan-bundle"), "the crate ***");

    // Only now the values are known.
    let (directory, agents) = build(&format!("{{ provider: echo, prefix: a, url: {from} }}")).await;
    let error = agents.unwrap_err();
    let expected = format!("{}:4:41: the model `main` has a `url`", directory.path().join("goondan.yaml").display());
    assert!(error.code() == "E_CONFIG_SCHEMA_INVALID" && error.message().starts_with(&expected), "{error:?}");

    let absent = "{ provider: echo, prefix: { valueFrom: { env: GOONDAN_ABSENT_KEY } } }";
    let (_directory, agents) = build(absent).await;
    let error = agents.unwrap_err();
    assert_eq!(error.code(), "E_CONFIG_VALUE_NOT_FOUND");
    assert!(error.message().contains(":4:33: `spec.prefix` takes its value"), "{error:?}");
}

#[tokio::test]
async fn values_from_the_environment_are_masked_as_long_as_the_agents_exist() {
    const VALUE: &str = env!("CARGO_PKG_DESCRIPTION");
    let is_masked = || goondan::secret::mask(VALUE) == "***";
    let spec = "{ provider: echo, prefix: { valueFrom: { env: CARGO_PKG_DESCRIPTION } } }";
    let directory = bundle_of(&(model("main", spec) + AGENT));
    let bundle = Bundle::load(directory.path()).unwrap();
    let mut agents = bundle.build(MemoryStore::new()).await.unwrap();
    assert!(is_masked());
    agents.reload(&bundle, None).await.unwrap();
    assert!(is_masked(), "the agents that were reloaded have it too");
    drop(agents);
    assert!(!is_masked());
}

#[tokio::test]
async fn a_value_from_the_environment_that_is_no_secret_is_not_masked() {
    let spec = "{ provider: echo, prefix: { valueFrom: { env: CARGO_MANIFEST_DIR, secret: false } } }";
    let directory = bundle_of(&(model("main", spec) + AGENT));
    let agents = Bundle::load(directory.path()).unwrap().build(MemoryStore::new()).await.unwrap();
    let answer = agents.get("main").unwrap().instance("a").await.unwrap().run("hi").await.unwrap();
    assert_eq!(answer.text(), concat!(env!("CARGO_MANIFEST_DIR"), "main:0"));
    let text = concat!("in ", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(goondan::secret::mask(text), text);
}

#[tokio::test]
async fn requests_to_any_provider_are_recorded() {
    let directory = bundle_of(&(model("main", "{ provider: plain, record: ./requests.jsonl }") + AGENT));
    let agents = Bundle::load(directory.path()).unwrap().build(MemoryStore::new()).await.unwrap();
    agents.get("main").unwrap().instance("a").await.unwrap().run("hi").await.unwrap();
    let lines = fs::read_to_string(directory.path().join("requests.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 1);
    let line: Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(line["messages"][0]["content"], "hi", "{line}");
}

#[tokio::test]
async fn a_reload_asks_the_model_with_the_new_settings() {
    let directory = bundle_of(&(model("main", "{ provider: echo, prefix: 'old ' }") + AGENT));
    let mut agents = Bundle::load(directory.path()).unwrap().build(MemoryStore::new()).await.unwrap();
    let instance = agents.get("main").unwrap().instance("a").await.unwrap();
    assert_eq!(instance.run("hi").await.unwrap().text(), "old main:0");
    let file = directory.path().join("goondan.yaml");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("old", "new")).unwrap();
    agents.reload(&Bundle::load(directory.path()).unwrap(), None).await.unwrap();
    assert_eq!(instance.run("hi").await.unwrap().text(), "new main:0");
    // A provider that cannot build changes nothing.
    fs::write(&file, model("main", "{ provider: panics, when: build }") + AGENT).unwrap();
    agents.reload(&Bundle::load(directory.path()).unwrap(), None).await.unwrap_err();
    assert_eq!(instance.run("hi").await.unwrap().text(), "new main:0");
}

/// What an agent with these `models` answers when a middleware chooses the model `name`, or the code of the error.
#[cfg(test)]
async fn chosen(models: &str, name: &str) -> String {
    let models = if models.is_empty() { String::new() } else { format!("  models: {models}\n") };
    let text = model("main", "{ provider: echo, prefix: '' }")
        + &model("cheap", "{ provider: echo, prefix: '' }")
        + &model("large", "{ provider: echo, prefix: '' }")
        + "apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: { name: choice }\n"
        + &format!("spec: {{ entry: \"linked:choice\", config: {{ model: {name} }} }}\n---\n")
        + AGENT
        + &models
        + "  extensions: [ { ref: Extension/choice } ]\n";
    let directory = bundle_of(&text);
    let bundle = Bundle::check_with(directory.path(), &KnownExtension::linked()).unwrap();
    let agents = bundle.build(MemoryStore::new()).await.unwrap();
    let turn = agents.get("main").unwrap().instance("a").await.unwrap().run("hi").await;
    turn.map_or_else(|error| error.code().to_string(), |turn| turn.text().into_owned())
}

#[tokio::test]
#[covers("API-11")]
async fn an_agent_can_ask_the_models_that_it_lists_and_its_own() {
    assert_eq!(chosen("", "cheap").await, "cheap:0", "without a list, all models of the bundle");
    assert_eq!(chosen("", "main").await, "main:0");
    assert_eq!(chosen("[ Model/large, { kind: Model, name: cheap } ]", "cheap").await, "cheap:0");
    assert_eq!(chosen("[ Model/large ]", "cheap").await, "E_MODEL_NOT_FOUND");
    assert_eq!(chosen("[ Model/large ]", "main").await, "main:0", "its own, though it is not listed");
    assert_eq!(chosen("[]", "large").await, "E_MODEL_NOT_FOUND");
}

#[test]
fn models_of_an_agent_are_references() {
    let errors = |models: &str| {
        let directory = bundle_of(&format!("{}{AGENT}  models: {models}\n", model("main", "{ provider: plain }")));
        let errors = Bundle::check(directory.path()).unwrap_err();
        errors.iter().map(|error| format!("{} {}: {}", error.place.unwrap(), error.path, error.message)).collect()
    };
    let unknown: Vec<String> = errors("[ Model/mian, Model/main, Model/main ]");
    assert_eq!(
        unknown,
        [
            "11:13 spec.models[0]: the bundle has no Model `mian`; it has `main`; did you mean `main`?",
            "11:37 spec.models[2]: the model `main` is listed twice",
        ]
    );
    let text: Vec<String> = errors("Model/main");
    assert_eq!(text, ["11:11 spec.models: `spec.models` must be a list, but is the text `Model/main`"]);
}

#[test]
fn a_model_that_no_agent_can_ask_is_a_warning() {
    let with = |list: &str| {
        let text = model("main", "{ provider: plain }") + &model("other", "{ provider: plain }") + AGENT + list;
        let bundle = Bundle::load(bundle_of(&text).path()).unwrap();
        bundle.warnings().iter().map(|warning| warning.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(with("  models: [ Model/other ]\n"), [""; 0]);
    assert_eq!(with("  models: []\n"), ["no agent can ask the model `other`"]);
    assert_eq!(with(""), ["no agent asks the model `other`: only a middleware that names it does"]);
}
