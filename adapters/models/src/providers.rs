//! The providers that bundles can name.

/// Anthropic, over [`Anthropic`](crate::wire::Anthropic).
#[cfg(feature = "anthropic")]
pub const ANTHROPIC: crate::Provider = crate::Provider::new("anthropic", Some("https://api.anthropic.com"), true);

/// Amazon Bedrock, over [`Converse`](crate::wire::Converse). Its address depends on the region. Requests without a key
/// are signed with the keys of AWS in the environment or in a profile.
#[cfg(feature = "bedrock")]
pub const BEDROCK: crate::Provider = crate::Provider::new("bedrock", None, false).of_aws();

/// OpenAI, over [`Responses`](crate::wire::Responses).
#[cfg(feature = "openai")]
pub const OPENAI: crate::Provider = crate::Provider::new("openai", Some("https://api.openai.com/v1"), true);

/// Returns a provider of chat completions, over [`Chat`](crate::wire::Chat).
#[cfg(feature = "chat")]
pub const fn chat(dialect: &crate::wire::Dialect) -> crate::Provider {
    crate::Provider::new(dialect.name, dialect.base_url, dialect.needs_key)
}

/// Gemini, over [`Gemini`](crate::wire::Gemini).
#[cfg(feature = "gemini")]
pub const GEMINI: crate::Provider =
    crate::Provider::new("gemini", Some("https://generativelanguage.googleapis.com"), true);
