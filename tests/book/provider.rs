//! The provider with a check in `docs/providers.md`.

use goondan::Secret;
use goondan::model::{BundlePath, Findings, Model, ModelProvider, ProviderContext, ScriptItem, ScriptedModel};
use goondan::prelude::*;

struct Hosted;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HostedConfig {
    /// Where the model is.
    #[schemars(example = "https://models.example.com")]
    base_url: String,
    /// The key.
    api_key: Secret,
    /// A file with text that every answer begins with.
    preamble: Option<BundlePath>,
}

impl ModelProvider for Hosted {
    const NAME: &'static str = "hosted";
    const DESCRIPTION: &'static str = "Asks a model behind a URL.";
    type Config = HostedConfig;

    fn check(config: &HostedConfig, at: &ProviderContext<'_>, found: &mut Findings) {
        if !config.base_url.starts_with("https://") {
            found.error("/baseUrl", "`spec.baseUrl` is no https URL", "write `https://` before the host");
        }
        found.hint("/apiKey", "the key is written in the bundle", "write `{ valueFrom: { env: API_KEY } }`");
        if let Some(preamble) = &config.preamble {
            let file = at.file(preamble);
            if !file.is_file() {
                let message = format!("`spec.preamble` names a file that does not exist: `{}`", file.display());
                found.error("/preamble", message, "create it");
            }
            found.file(file);
        }
    }

    fn build(config: HostedConfig, at: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        let preamble = config.preamble.map(|file| std::fs::read_to_string(at.file(&file))).transpose()?;
        // …
        let answer = format!("{}{}", preamble.unwrap_or_default(), config.api_key.expose().len());
        Ok(Box::new(ScriptedModel::new([ScriptItem::say(answer)])))
    }
}

goondan::model_provider!(Hosted);

#[test]
fn the_provider_checks_what_its_schema_cannot_say() {
    let provider = goondan::model::find_provider("hosted").unwrap().unwrap();
    let root = tempfile::tempdir().unwrap();
    let at = ProviderContext::new(root.path(), "main");
    let config = goondan::json!({ "baseUrl": "http://a", "apiKey": "0123", "preamble": "./hello.txt" });
    let found = provider.check(config.clone(), &at).unwrap();
    let codes: Vec<_> = found.iter().map(|finding| finding.code.is_some()).collect();
    assert_eq!(codes, [true, false, true], "two errors and a hint: {found:?}");
    assert_eq!(found.files(), [root.path().join("hello.txt")]);
    std::fs::write(root.path().join("hello.txt"), "Hello: ").unwrap();
    assert!(provider.build(config, &at).is_ok());
}
