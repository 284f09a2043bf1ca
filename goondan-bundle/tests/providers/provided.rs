//! The providers of the tests.

use goondan::model::{
    BundlePath, DeltaSink, Findings, Model, ModelProvider, ModelRequest, ModelResponse, ProviderContext,
};
use goondan::{BoxFuture, Result, Secret};
use schemars::JsonSchema;
use serde::Deserialize;

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
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
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
