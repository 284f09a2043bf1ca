//! The providers that bundles can name.

use crate::config::Provider;

/// Anthropic, over [`Anthropic`](crate::wire::Anthropic).
#[cfg(feature = "anthropic")]
pub const ANTHROPIC: Provider =
    Provider { name: "anthropic", base_url: Some("https://api.anthropic.com"), needs_key: true };
