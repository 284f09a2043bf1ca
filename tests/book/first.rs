//! The first extension of `docs/writing-extensions.md`.

/// Remembers what it is told.
#[goondan::extension(name = "notes")]
pub mod notes {
    use goondan::prelude::*;

    /// The input of `add`.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Note {
        /// What to remember.
        text: String,
    }

    /// Remembers a text for later.
    #[tool]
    async fn add(note: Note, api: &ExtensionApi) -> Result<usize> {
        api.state().update(|notes: &mut Vec<String>| {
            notes.push(note.text);
            notes.len()
        })
    }

    /// Lists everything that was remembered.
    #[tool(effect = read)]
    async fn list(api: &ExtensionApi) -> Result<Vec<String>> {
        Ok(api.state().get()?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::model::ScriptItem;
    use goondan::testing::Chat;

    use super::notes;

    #[tokio::test]
    async fn what_was_told_is_remembered() -> goondan::Result<()> {
        let add = ScriptItem::call("notes__add", json!({ "text": "buy milk" }));
        let list = ScriptItem::call("notes__list", json!({}));
        let script = [add, list, ScriptItem::say("done")];
        let chat = Chat::with::<notes::Extension>(json!({})).script(script).start().await?;

        let turn = chat.say("remember the milk").await?;

        assert_eq!(turn.text(), "done");
        let transcript = chat.transcript().await;
        assert_eq!(transcript[4], r#"tool: ["buy milk"]"#);
        Ok(())
    }
}
