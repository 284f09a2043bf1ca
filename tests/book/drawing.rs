//! The tool of `docs/writing-extensions.md` that answers with a file.

/// Draws flags.
#[goondan::extension(name = "flags")]
pub mod flags {
    use goondan::conversation::FilePart;
    use goondan::prelude::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Country {
        /// Its name in English.
        name: String,
    }

    /// Draws the flag of a country.
    #[tool(effect = read)]
    async fn draw(country: Country) -> Result<ToolReply> {
        let Some(svg) = svg(&country.name) else {
            return Ok(ToolReply::text("only the flag of Japan is known").failed());
        };
        let flag = FilePart::from_bytes("image/svg+xml", svg.as_bytes()).named("flag.svg");
        Ok(ToolReply::text("A red disc on white:").file(flag))
    }

    fn svg(country: &str) -> Option<&'static str> {
        let svg = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 30 20'><circle cx='15' cy='10' r='6'/></svg>";
        (country == "Japan").then_some(svg)
    }
}

#[tokio::test]
async fn a_flag_is_a_file_and_no_flag_a_failure() -> goondan::Result<()> {
    use goondan::json;
    use goondan::middleware::ToolCallStatus;
    use goondan::testing::Chat;

    let mut chat = Chat::with::<flags::Extension>(json!({})).start().await?;
    let flag = chat.call("flags__draw", json!({ "name": "Japan" })).await?;
    assert_eq!(flag.output(), Some(&json!("A red disc on white:\n[image/svg+xml flag.svg]")));
    assert!(!flag.to_reply().unwrap().is_error());
    let none = chat.call("flags__draw", json!({ "name": "Atlantis" })).await?;
    assert_eq!(none.status(), ToolCallStatus::Error);
    assert_eq!(none.error().unwrap().code.as_deref(), Some("E_TOOL_FAILED"));
    Ok(())
}
