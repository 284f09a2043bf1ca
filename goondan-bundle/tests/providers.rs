//! Providers of models that a program brings: what a bundle with them is checked for, and what its agents call.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::time::Duration;

use goondan::model::{
    BundlePath, Deltas, Findings, Model, ModelProvider, ModelRequest, ModelResponse, ProviderContext, find_provider,
};
use goondan::prelude::{Next, Result, Step, StepContext, StepResult};
use goondan::store::MemoryStore;
use goondan::{BoxFuture, Error, Secret, json};
use goondan_bundle::{Bundle, Diagnostic, KnownExtension, Severity, schema};
use goondan_covers::covers;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

/// Answers with the name of the model, and its prefix.
struct Echo;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EchoConfig {
    /// What every answer begins with.
    #[schemars(example = "> ")]
    prefix: String,
    url: Option<String>,
    key: Option<Secret>,
    limits: Option<Limits>,
    tape: Option<BundlePath>,
    mode: Option<Mode>,
}

/// Limits of time.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Limits {
    idle_ms: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Mode {
    Fast,
    Slow,
}

struct EchoModel(String);

impl ModelProvider for Echo {
    const NAME: &'static str = "echo";
    const DESCRIPTION: &'static str = "Answers with its name.";
    type Config = EchoConfig;

    fn check(config: &EchoConfig, at: &ProviderContext<'_>, found: &mut Findings) {
        if config.url.as_ref().is_some_and(|url| !url.starts_with("http")) {
            found.error("/url", format!("the model `{}` has a `url` that is not http", at.model()), "write http://…");
        }
        if config.limits.as_ref().is_some_and(|limits| limits.idle_ms == 0) {
            found.error("/limits/idleMs", "no time at all", "write a larger number");
        }
        if config.key.is_some() {
            found.hint("/key", "the key is written in the bundle", "take it from the environment");
        }
        if let Some(tape) = &config.tape {
            found.file(at.file(tape));
        }
    }

    fn build(config: EchoConfig, at: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        let slow = matches!(config.mode, Some(Mode::Slow));
        let key = config.key.map(|key| key.expose().len()).unwrap_or_default();
        Ok(Box::new(EchoModel(if slow { "slow".into() } else { format!("{}{}:{key}", config.prefix, at.model()) })))
    }
}

impl Model for EchoModel {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: Deltas<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            if self.0 == "slow" {
                std::future::pending::<()>().await;
            }
            Ok(ModelResponse::text(&self.0))
        })
    }
}

goondan::model_provider!(Echo);

/// A provider without settings, under a name that two crates link.
struct Twin;

impl ModelProvider for Twin {
    const NAME: &'static str = "twin";
    const DESCRIPTION: &'static str = "One of two.";
    type Config = ();

    fn build((): (), _: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        Ok(Box::new(EchoModel("twin".to_owned())))
    }
}

goondan::model_provider!(Twin);
goondan::model_provider!(Twin);

/// A provider without settings.
struct Plain;

impl ModelProvider for Plain {
    const NAME: &'static str = "plain";
    const DESCRIPTION: &'static str = "Answers the same.";
    type Config = ();

    fn build((): (), _: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        Ok(Box::new(EchoModel("plain".to_owned())))
    }
}

goondan::model_provider!(Plain);

/// A provider whose settings have several forms.
struct Forms;

#[derive(Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
enum Form {
    One { one: String },
    Other(Other),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Other {
    other: u32,
}

impl ModelProvider for Forms {
    const NAME: &'static str = "forms";
    const DESCRIPTION: &'static str = "Has settings of several forms.";
    type Config = Form;

    fn build(config: Form, _: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        Ok(Box::new(EchoModel(match config {
            Form::One { one } => one,
            Form::Other(Other { other }) => other.to_string(),
        })))
    }
}

goondan::model_provider!(Forms);

/// A provider that panics where its setting says so.
struct Panics;

#[derive(Deserialize, JsonSchema)]
struct PanicsConfig {
    when: String,
}

impl ModelProvider for Panics {
    const NAME: &'static str = "panics";
    const DESCRIPTION: &'static str = "Panics.";
    type Config = PanicsConfig;

    fn check(config: &PanicsConfig, _: &ProviderContext<'_>, _: &mut Findings) {
        assert!(config.when != "check", "at the check");
    }

    fn build(_: PanicsConfig, _: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        panic!("at the build")
    }
}

goondan::model_provider!(Panics);

/// A provider that takes what no object is, and one that takes a member of the bundle.
struct Text;
struct Greedy;

#[derive(Deserialize, JsonSchema)]
struct GreedyConfig {
    #[expect(dead_code, reason = "the schema matters alone")]
    record: String,
}

impl ModelProvider for Text {
    const NAME: &'static str = "text";
    const DESCRIPTION: &'static str = "Takes a text.";
    type Config = String;

    fn build(_: String, _: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        Ok(Box::new(EchoModel("text".to_owned())))
    }
}

impl ModelProvider for Greedy {
    const NAME: &'static str = "greedy";
    const DESCRIPTION: &'static str = "Takes `record`.";
    type Config = GreedyConfig;

    fn build(_: GreedyConfig, _: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        Ok(Box::new(EchoModel("greedy".to_owned())))
    }
}

goondan::model_provider!(Text);
goondan::model_provider!(Greedy);

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

fn model(name: &str, spec: &str) -> String {
    format!("apiVersion: goondan.ai/v1\nkind: Model\nmetadata: {{ name: {name} }}\nspec: {spec}\n---\n")
}

const AGENT: &str = "apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec:
  model: Model/main
";

#[cfg(test)]
fn bundle_of(text: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("goondan.yaml"), text).unwrap();
    fs::write(directory.path().join("script.yaml"), "- say: hello\n").unwrap();
    directory
}

/// The error in a model with this spec, which begins at 4:7: its code, its place, its message and its remedy.
#[track_caller]
#[cfg(test)]
fn error(spec: &str) -> String {
    let directory = bundle_of(&(model("main", spec) + AGENT));
    let errors = Bundle::check(directory.path()).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors}");
    let Diagnostic { code, place, path, message, suggestion, .. } = errors.first();
    format!("{} {} {path}: {message} -> {suggestion}", code.as_ref().unwrap(), place.unwrap())
}

#[test]
#[covers("RULE-02", "SCHEMA-01")]
fn mistakes_in_the_settings_have_a_place_and_a_remedy() {
    const SCHEMA: &str = "E_CONFIG_SCHEMA_INVALID";
    for (spec, expected) in [
        ("{ provider: echo }", "4:7 spec.prefix: `spec.prefix` is missing -> add `prefix: \"> \"`"),
        (
            "{ provider: echo, prefx: a }",
            "4:25 spec.prefx: unknown field `prefx` in `spec` of the provider `echo`: expected `key`, `limits`, `mode`, \
             `prefix`, `provider`, `record`, `tape` or `url`; did you mean `prefix`? -> write `prefix`",
        ),
        (
            "{ provider: echo, prefix: a, recrod: b }",
            "4:36 spec.recrod: unknown field `recrod` in `spec` of the provider `echo`: expected `key`, `limits`, \
             `mode`, `prefix`, `provider`, `record`, `tape` or `url`; did you mean `record`? -> write `record`",
        ),
        (
            "{ provider: echo, prefix: 5 }",
            "4:33 spec.prefix: `spec.prefix` does not fit the provider `echo`: 5 is not of type \"string\" -> put it in \
             quotes",
        ),
        (
            "{ provider: echo, prefix: [a] }",
            "4:33 spec.prefix: `spec.prefix` does not fit the provider `echo`: [\"a\"] is not of type \"string\" -> \
             change it: What every answer begins with.",
        ),
        (
            "{ provider: echo, prefix: a, limits: {} }",
            "4:44 spec.limits.idleMs: `spec.limits.idleMs` is missing -> add `idleMs: <value>`",
        ),
        (
            "{ provider: echo, prefix: a, limits: { idleMs: 1, x: 2 } }",
            "4:57 spec.limits.x: unknown field `x` in `spec.limits` of the provider `echo`: expected `idleMs` -> \
             remove `x`",
        ),
        (
            "{ provider: echo, prefix: a, tape: ../x }",
            "4:42 spec.tape: `spec.tape` must be a path below the bundle's directory, but is \"../x\" -> write a \
             relative path without `..`",
        ),
        (
            "{ provider: echo, prefix: a, record: /x }",
            "4:44 spec.record: `spec.record` must be a path below the bundle's directory, but is the text `/x` -> \
             write a relative path without `..`",
        ),
        // What the provider itself finds.
        (
            "{ provider: echo, prefix: a, url: ftp }",
            "4:41 spec.url: the model `main` has a `url` that is not http -> write http://…",
        ),
        (
            "{ provider: echo, prefix: a, limits: { idleMs: 0 } }",
            "4:54 spec.limits.idleMs: no time at all -> write a larger number",
        ),
        // A provider without settings.
        (
            "{ provider: plain, a: 1 }",
            "4:26 spec.a: unknown field `a` in `spec` of the provider `plain`: expected `provider` or \
             `record` -> remove `a`",
        ),
        // The provider itself.
        ("{ script: a }", "4:7 spec.provider: `spec.provider` is missing -> add `provider: scripted`"),
        (
            "{ provdier: echo, prefix: a }",
            "4:9 spec.provdier: unknown field `provdier` in `spec`: expected `provider` or `record`; did you mean \
             `provider`? -> write `provider`",
        ),
        (
            "{ provider: { valueFrom: { env: A } } }",
            "4:19 spec.provider: `spec.provider` must be text, but is a mapping -> write text",
        ),
    ] {
        assert_eq!(error(spec), format!("{SCHEMA} {expected}"), "{spec}");
    }
}

#[test]
fn an_unknown_provider_is_told_with_those_that_the_program_has() {
    let told = error("{ provider: ehco }");
    let (begin, end) = ("4:19 spec.provider: unknown provider `ehco`: this build knows ", "-> write `provider: echo`");
    assert!(told.starts_with(&format!("E_CONFIG_SCHEMA_INVALID {begin}")), "{told}");
    assert!(told.ends_with(&format!("; did you mean `echo`? {end}")), "{told}");
    for known in ["`echo`", "`forms`", "`scripted`"] {
        assert!(told.contains(known), "{told}");
    }
}

#[test]
fn settings_of_several_forms_are_read_beside_the_members_of_the_bundle() {
    for right in ["{ provider: forms, one: a }", "{ provider: forms, other: 1, record: ./r }"] {
        let directory = bundle_of(&(model("main", right) + AGENT));
        Bundle::check(directory.path()).unwrap_or_else(|errors| panic!("{right}: {errors}"));
    }
    let wrong = error("{ provider: forms, one: a, other: 1 }");
    assert!(
        wrong.starts_with("E_CONFIG_SCHEMA_INVALID 4:7 spec: `spec` does not fit the provider `forms`: "),
        "{wrong}"
    );
}

#[test]
fn a_provider_that_does_not_work_is_named() {
    for (spec, expected) in [
        (
            "{ provider: twin }",
            "two crates, `goondan-bundle` and `goondan-bundle`, link a provider called `twin` -> rename one of them, or \
             link only one of the crates",
        ),
        (
            "{ provider: panics, when: check }",
            "the provider `panics` of the crate goondan-bundle 0.1.0 does not work: a check panicked: at the check -> ",
        ),
        (
            "{ provider: text }",
            "the provider `text` of the crate goondan-bundle 0.1.0 does not work: the config is of the type \
             `string`, and configs are an object -> ",
        ),
        (
            "{ provider: greedy }",
            "the provider `greedy` of the crate goondan-bundle 0.1.0 does not work: its config has a member \
             `record`, which means something else -> ",
        ),
    ] {
        let error = error(spec);
        assert!(error.starts_with(&format!("E_MODEL_PROVIDER 4:19 spec.provider: {expected}")), "{error}");
    }
}

#[tokio::test]
async fn what_keeps_a_provider_from_building_has_the_place_of_the_model() {
    let directory = bundle_of(&(model("main", "{ provider: panics, when: build }") + AGENT));
    let bundle = Bundle::load(directory.path()).unwrap();
    let error = bundle.build(MemoryStore::new()).await.unwrap_err();
    assert_eq!(error.code(), "E_MODEL_PROVIDER");
    let file = directory.path().join("goondan.yaml");
    let expected = format!("{}:4:7: the model `main`: the provider `panics` of the crate", file.display());
    assert!(error.message().starts_with(&expected) && error.message().ends_with("at the build"), "{error:?}");
}

/// The warnings about a model with this spec.
#[cfg(test)]
fn warnings(spec: &str) -> Vec<String> {
    let directory = bundle_of(&(model("main", spec) + AGENT));
    let bundle = Bundle::load(directory.path()).unwrap();
    let warnings = bundle.warnings().iter();
    warnings
        .map(|warning| {
            assert_eq!(warning.severity, Severity::Warning);
            format!("{} {}: {}", warning.place.unwrap(), warning.path, warning.message)
        })
        .collect()
}

#[test]
fn hints_of_a_provider_are_warnings() {
    assert_eq!(
        warnings("{ provider: echo, prefix: a, key: literal }"),
        ["4:41 spec.key: the key is written in the bundle"]
    );
}

#[test]
fn what_is_found_at_a_value_from_the_environment_is_left_out() {
    let from = |name: &str| format!("{{ valueFrom: {{ env: {name} }} }}");
    let set = from("CARGO_PKG_NAME");
    let spec = format!("{{ provider: echo, prefix: {set}, key: {set}, url: {set}, mode: {set} }}");
    assert_eq!(warnings(&spec), [""; 0]);
    let missing = warnings(&format!("{{ provider: echo, prefix: a, key: {} }}", from("GOONDAN_ABSENT_KEY")));
    assert_eq!(missing.len(), 1);
    let expected = "4:41 spec.key: `spec.key` takes its value from the variable `GOONDAN_ABSENT_KEY`, which is not set";
    assert!(missing[0].starts_with(expected), "{missing:?}");
    // A value where no text fits is a mistake whatever it is.
    let number = error(&format!("{{ provider: echo, prefix: a, limits: {{ idleMs: {set} }} }}"));
    assert!(number.starts_with("E_CONFIG_SCHEMA_INVALID 4:54 spec.limits.idleMs: "), "{number}");
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

#[test]
fn files_that_a_provider_reads_belong_to_the_bundle() {
    let spec = "{ provider: echo, prefix: a, tape: ./script.yaml, record: ./script.yaml }";
    assert!(error(spec).contains("spec.record: `spec.record` is a file that the bundle is made of"), "{}", error(spec));
    let directory = bundle_of(&(model("main", "{ provider: echo, prefix: a, tape: ./script.yaml }") + AGENT));
    let bundle = Bundle::load(directory.path()).unwrap();
    assert_eq!(bundle.models().next().unwrap().files, [directory.path().join("script.yaml")]);
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

#[tokio::test(start_paused = true)]
#[covers("TIME-01", "D-22")]
async fn limits_of_the_agent_take_precedence_over_those_of_the_swarm() {
    let run = async |agent: &str, swarm: &str| {
        let text = model("main", "{ provider: echo, prefix: '', mode: slow }")
            + AGENT
            + &format!(
                "  policy: {{ {agent} }}\n---\napiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: {{ name: s }}\n"
            )
            + &format!(
                "spec: {{ agents: [ {{ ref: Agent/main }} ], entryAgent: Agent/main, policy: {{ {swarm} }} }}\n"
            );
        let directory = bundle_of(&text);
        let agents = Bundle::load(directory.path()).unwrap().build(MemoryStore::new()).await.unwrap();
        let instance = agents.get("main").unwrap().instance("a").await.unwrap();
        let begin = tokio::time::Instant::now();
        let error = instance.run("hi").await.unwrap_err();
        (error.code().to_string(), begin.elapsed())
    };
    let ends = |code: &str, seconds| (code.to_owned(), Duration::from_secs(seconds));
    assert_eq!(run("", "").await, ends("E_MODEL_TIMEOUT", 600));
    assert_eq!(run("", "modelTimeoutMs: 5000").await, ends("E_MODEL_TIMEOUT", 5));
    assert_eq!(run("modelTimeoutMs: 7000", "modelTimeoutMs: 5000").await, ends("E_MODEL_TIMEOUT", 7));
    assert_eq!(run("turnTimeoutMs: 3000", "modelTimeoutMs: 5000").await, ends("E_TURN_TIMEOUT", 3));
    assert_eq!(
        run("turnTimeoutMs: 9000", "turnTimeoutMs: 3000, modelTimeoutMs: 5000").await,
        ends("E_MODEL_TIMEOUT", 5)
    );
}

/// Asks for another run of every step.
struct Again;

#[goondan::extension(name = "again")]
impl Again {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn again(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await?;
        Err(Error::retry_after(Duration::ZERO, "again"))
    }
}

#[tokio::test]
#[covers("D-22")]
async fn retries_are_limited_by_the_bundle() {
    for (policy, requests) in [("{}", 4), ("{ maxRetries: 1 }", 2), ("{ maxRetries: 0 }", 1)] {
        let directory = bundle_of(
            &(model("main", "{ provider: plain, record: ./requests.jsonl }")
                + "apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: { name: again }\n"
                + "spec: { entry: \"linked:again\" }\n---\n"
                + AGENT
                + &format!("  extensions: [ {{ ref: Extension/again }} ]\n  policy: {policy}\n")),
        );
        let agents = Bundle::load(directory.path()).unwrap().build(MemoryStore::new()).await.unwrap();
        agents.get("main").unwrap().instance("a").await.unwrap().run("hi").await.unwrap_err();
        let lines = fs::read_to_string(directory.path().join("requests.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), requests, "{policy}");
    }
}

#[test]
fn limits_are_whole_numbers() {
    let error = |policy: &str| {
        let text = model("main", "{ provider: plain }") + AGENT + &format!("  policy: {{ {policy} }}\n");
        let errors = Bundle::check(bundle_of(&text).path()).unwrap_err();
        format!("{} {}", errors.first().place.unwrap(), errors.first().message)
    };
    let range = "a whole number from 1 to 4294967295, but is the number";
    for limit in ["turnTimeoutMs", "modelTimeoutMs", "toolTimeoutMs", "maxStepsPerTurn"] {
        let column = 15 + limit.len();
        assert_eq!(error(&format!("{limit}: 0")), format!("11:{column} `spec.policy.{limit}` must be {range} `0`"));
    }
    assert!(error("maxRetries: -1").ends_with("must be a whole number from 0 to 4294967295, but is the number `-1`"));
    let text = model("main", "{ provider: plain }") + AGENT + "  policy: { maxRetries: 0 }\n";
    let bundle = Bundle::load(bundle_of(&text).path()).unwrap();
    assert_eq!(bundle.policy_of(bundle.entry_agent().unwrap()).max_retries, Some(0));
}

#[test]
#[covers("SCHEMA-01")]
fn editors_know_the_settings_of_every_provider() {
    let schema = schema(&[]);
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    assert_eq!(
        schema["$defs"]["provider:echo"]["properties"]["prefix"]["description"],
        "What every answer begins with."
    );
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let fits = |spec: Value| {
        let document =
            json!({ "apiVersion": "goondan.ai/v1", "kind": "Model", "metadata": { "name": "a" }, "spec": spec });
        validator.is_valid(&document)
    };
    let from = || json!({ "valueFrom": { "env": "NAME" } });
    for right in [
        json!({ "provider": "echo", "prefix": "a" }),
        json!({ "provider": "echo", "prefix": from(), "key": from(), "limits": { "idleMs": 1 }, "record": "./r" }),
        json!({ "provider": "plain" }),
        json!({ "provider": "forms", "one": "a", "record": "./r" }),
        json!({ "provider": "forms", "other": 1 }),
        json!({ "provider": "scripted", "script": "./a.yaml" }),
    ] {
        assert!(fits(right.clone()), "{right}");
    }
    for wrong in [
        json!({ "provider": "ehco", "prefix": "a" }),
        json!({ "prefix": "a" }),
        json!({ "provider": "echo" }),
        json!({ "provider": "echo", "prefix": 5 }),
        json!({ "provider": "echo", "prefix": "a", "script": "./a.yaml" }),
        json!({ "provider": "echo", "prefix": "a", "limits": { "idleMs": 1, "x": 1 } }),
        json!({ "provider": "echo", "prefix": "a", "tape": "../a" }),
        json!({ "provider": "plain", "a": 1 }),
        json!({ "provider": "forms", "one": "a", "x": 1 }),
        json!({ "provider": "plain", "record": from() }),
    ] {
        assert!(!fits(wrong.clone()), "{wrong}");
    }
}

#[test]
fn providers_are_found_by_their_names() {
    let echo = find_provider("echo").unwrap().unwrap();
    assert_eq!((echo.name(), echo.package()), ("echo", "goondan-bundle"));
    assert!(find_provider("nothing").unwrap().is_none());
    assert_eq!(find_provider("twin").unwrap_err().code(), "E_MODEL_PROVIDER");
}
