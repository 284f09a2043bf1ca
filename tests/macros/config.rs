//! Parameters and return types of `#[init]`, and the schema of the config.

use goondan::ErrorCode;
use goondan::extension::Extension;
use goondan::prelude::*;
use serde_json::{Value, json};

use crate::support::register;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Config {
    max_messages: u8,
}

/// An error that shows a test the parameters of `#[init]`: the name in the handle, and the config.
fn seen(api: &ExtensionApi, config: &Config) -> Error {
    Error::new("E_SEEN", format!("{api:?} {}", config.max_messages))
}

struct ApiFirst;

#[goondan::extension(name = "api-first")]
impl ApiFirst {
    #[init]
    async fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        std::future::ready(()).await;
        Err(seen(&api, &config))
    }
}

struct ConfigFirst;

#[goondan::extension(name = "config-first")]
impl ConfigFirst {
    #[init]
    fn new(config: Config, api: ExtensionApi) -> Result<Self> {
        Err(seen(&api, &config))
    }
}

struct ConfigOnly;

#[goondan::extension(name = "config-only")]
impl ConfigOnly {
    #[init]
    async fn new(Config { max_messages }: Config) -> Self {
        assert_eq!(max_messages, 3);
        Self
    }
}

struct Nothing;

#[goondan::extension(name = "nothing")]
impl Nothing {
    #[init]
    async fn new() -> Result<Nothing, std::io::Error> {
        Err(std::io::Error::other("no disk"))
    }
}

struct AnyConfig;

#[goondan::extension(name = "any-config")]
impl AnyConfig {
    #[init]
    fn new(config: Option<Value>) -> Self {
        assert_eq!(config, Some(json!([1])));
        Self
    }
}

fn error<E: Extension>(config: Value) -> Error {
    let Err(error) = register::<E>(config) else { panic!("`#[init]` of {} succeeded", E::DESCRIPTOR.name) };
    error
}

#[test]
fn every_order_of_parameters() {
    let config = json!({ "maxMessages": 3 });
    assert_eq!(error::<ApiFirst>(config.clone()).message(), "ExtensionApi(api-first) 3");
    assert_eq!(error::<ConfigFirst>(config.clone()).message(), "ExtensionApi(config-first) 3");
    assert!(register::<ConfigOnly>(config).is_ok());
    assert!(register::<AnyConfig>(json!([1])).is_ok());
    assert_eq!(error::<Nothing>(json!({})).message(), "no disk");
}

#[test]
fn wrong_config_is_refused_with_the_reason() {
    for config in [json!({}), json!({ "maxMessages": 300 }), json!({ "maxMessages": 3, "more": 1 }), json!(null)] {
        for error in [error::<ApiFirst>(config.clone()), error::<ConfigFirst>(config.clone())] {
            assert_eq!(error.code(), &ErrorCode::EXT_CONFIG, "{error:?}");
        }
    }
    let error = error::<ConfigOnly>(json!({ "maxMessages": "many" }));
    assert!(error.message().contains("invalid type: string \"many\""), "{error:?}");
}

#[test]
fn schema_is_that_of_the_config() {
    for descriptor in [ApiFirst::DESCRIPTOR, ConfigFirst::DESCRIPTOR, ConfigOnly::DESCRIPTOR] {
        let schema = (descriptor.config_schema)();
        assert_eq!(schema["required"], json!(["maxMessages"]), "{}", descriptor.name);
    }
}

#[test]
fn schema_without_a_config_allows_nothing() {
    let schema = (Nothing::DESCRIPTOR.config_schema)();
    assert_eq!(schema, json!({ "type": "object", "additionalProperties": false }));
}
