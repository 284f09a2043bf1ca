//! An extension that repeats what the model tells it, in every way that it has.

use goondan::prelude::*;

/// What a tool is told.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Speech {
    /// The text.
    text: String,
}

#[doc = "Hostile: \u{1b}[35;45m\u{1b}]0;title\u{7}\u{9b}2J\u{202e}."]
#[goondan::extension(name = "hostile")]
pub(crate) mod extension {
    use super::*;

    #[doc = "Fails with the text \u{1b}[35;45m\u{1b}]0;title\u{7}\u{9b}2J\u{202e}."]
    #[tool]
    async fn fail(speech: Speech) -> Result<String> {
        Err(Error::new(speech.text.clone(), speech.text))
    }

    /// Panics with the text.
    #[tool]
    #[expect(clippy::panic, reason = "its message is printed")]
    async fn panic(speech: Speech) -> Result<String> {
        panic!("{}", speech.text)
    }

    /// Logs the text, and keeps it as state.
    #[tool]
    async fn log(api: &ExtensionApi, speech: Speech) -> Result<String> {
        let text = &speech.text;
        api.logger().with(text, text).warn(text);
        tracing::warn_span!("hostile", text, shown = ?text).in_scope(|| tracing::warn!(text, "{text}"));
        api.state().set(text)?;
        Ok(speech.text)
    }
}
