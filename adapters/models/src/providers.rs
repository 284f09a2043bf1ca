//! The providers that bundles can name.

/// Anthropic, over [`Anthropic`](crate::wire::Anthropic).
#[cfg(feature = "anthropic")]
pub const ANTHROPIC: crate::Provider =
    crate::Provider { name: "anthropic", base_url: Some("https://api.anthropic.com"), needs_key: true };

/// OpenAI, over [`Responses`](crate::wire::Responses).
#[cfg(feature = "openai")]
pub const OPENAI: crate::Provider =
    crate::Provider { name: "openai", base_url: Some("https://api.openai.com/v1"), needs_key: true };

/// Returns a provider of chat completions, over [`Chat`](crate::wire::Chat).
#[cfg(feature = "chat")]
pub const fn chat(dialect: &crate::wire::Dialect) -> crate::Provider {
    crate::Provider { name: dialect.name, base_url: dialect.base_url, needs_key: dialect.needs_key }
}

/// Gemini, over [`Gemini`](crate::wire::Gemini).
#[cfg(feature = "gemini")]
pub const GEMINI: crate::Provider =
    crate::Provider { name: "gemini", base_url: Some("https://generativelanguage.googleapis.com"), needs_key: true };
