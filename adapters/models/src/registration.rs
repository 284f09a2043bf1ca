//! Registers the providers, so that bundles of every program that links this crate know them.

use goondan_core::Result;
use goondan_runtime::{CassetteMode, Finding, Findings, Model, ModelProvider, ProviderContext, model_provider};

use crate::config::{ModelConfig, Problem, Provider};
#[cfg(feature = "chat")]
use crate::wire::Dialect;
use crate::wire::Wire;

/// Declares a provider of bundles: a type, its provider and wire, and a sentence about it.
macro_rules! register {
    ($name:ident: $provider:expr, $wire:expr, $description:literal) => {
        struct $name;

        impl ModelProvider for $name {
            const NAME: &'static str = $provider.name;
            const DESCRIPTION: &'static str = $description;
            type Config = ModelConfig;

            fn check(config: &ModelConfig, at: &ProviderContext<'_>, found: &mut Findings) {
                check(config, &$provider, &$wire, at, found);
            }

            fn can_miss(config: &ModelConfig, at: &ProviderContext<'_>, setting: &str) -> bool {
                // A played request is not sent.
                config.cassette.mode(at) == CassetteMode::Replay
                    && (setting == "/apiKey" || setting.starts_with("/headers/"))
            }

            fn build(config: ModelConfig, at: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
                let cassette = config.cassette.cassette(at)?;
                let model = config.model(&$provider, $wire)?;
                Ok(match cassette {
                    Some(cassette) => Box::new(model.with_cassette(cassette)),
                    None => Box::new(model),
                })
            }
        }

        model_provider!($name);
    };
}

#[cfg(feature = "anthropic")]
register!(Anthropic: crate::providers::ANTHROPIC, crate::wire::Anthropic, "Claude models of Anthropic.");
#[cfg(feature = "bedrock")]
register!(Bedrock: crate::providers::BEDROCK, crate::wire::Converse, "Models of all makers in Amazon Bedrock.");
#[cfg(feature = "gemini")]
register!(Gemini: crate::providers::GEMINI, crate::wire::Gemini, "Gemini models of Google.");
#[cfg(feature = "openai")]
register!(OpenAi: crate::providers::OPENAI, crate::wire::Responses, "Models of OpenAI, over responses.");

/// Declares a provider of chat completions.
#[cfg(feature = "chat")]
macro_rules! register_chat {
    ($($name:ident: $dialect:ident, $description:literal;)*) => {
        $(register!(
            $name: crate::providers::chat(&Dialect::$dialect), crate::wire::Chat::new(Dialect::$dialect), $description
        );)*
    };
}

#[cfg(feature = "chat")]
register_chat! {
    OpenAiCompatible: OPENAI_COMPATIBLE, "Any server that speaks chat completions.";
    OpenRouter: OPENROUTER, "Models of many providers, over OpenRouter.";
    Ollama: OLLAMA, "Models that Ollama runs, on this machine unless `baseUrl` says otherwise.";
    DeepSeek: DEEPSEEK, "Models of DeepSeek.";
    Mistral: MISTRAL, "Models of Mistral.";
    Groq: GROQ, "Models that Groq runs.";
    Xai: XAI, "Grok models of xAI.";
    Vllm: VLLM, "Models that vLLM serves.";
    LmStudio: LMSTUDIO, "Models that LM Studio runs.";
}

fn check<W: Wire>(config: &ModelConfig, provider: &Provider, wire: &W, at: &ProviderContext<'_>, found: &mut Findings) {
    if let Err(error) = config.cassette.cassette(at) {
        let (code, message) = (error.code().clone(), error.message());
        found.add(Finding::error(code, "/cassette", message, error.suggestion().unwrap_or_default()));
    }
    let file = config.cassette.file(at);
    match config.cassette.mode(at) {
        CassetteMode::Replay => found.file(file),
        _ => found.recording(file),
    }
    if config.base_url.is_none() {
        config.address(provider).into_iter().for_each(|url| found.host(url));
    }
    #[cfg(feature = "bedrock")]
    if provider.is_aws && config.api_key.is_none() {
        crate::aws::VARIABLES.into_iter().for_each(|name| found.variable(name));
    }
    for Problem { setting, error, is_hint } in config.problems(provider, wire) {
        let (message, remedy) = (error.message(), error.suggestion().unwrap_or_default());
        match is_hint {
            true => found.hint(setting, message, remedy),
            false => found.add(Finding::error(error.code().clone(), setting, message, remedy)),
        }
    }
    if config.api_key.is_some() {
        // Findings at values from the environment are left out, so this one is about a key in the file.
        let message = "`apiKey` is written in the bundle, where everybody who has the bundle can read it";
        found.hint("/apiKey", message, "write `apiKey: { valueFrom: { env: NAME } }`");
    }
}
