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
        let Some(gif) = gif(&country.name) else {
            return Ok(ToolReply::text("only the flag of Japan is known").failed());
        };
        let flag = FilePart::from_bytes("image/gif", gif).named("flag.gif");
        Ok(ToolReply::text("A red disc on white:").file(flag))
    }

    /// Fifteen pixels.
    fn gif(country: &str) -> Option<&'static [u8]> {
        let gif = b"GIF89a\x05\0\x03\0\x80\0\0\xff\xff\xff\xbc\0-,\0\0\0\0\x05\0\x03\0\0\
            \x02\t\x04\x08\x10 B\x80\0\x01\xa2\0;";
        (country == "Japan").then_some(gif)
    }
}

#[tokio::test]
async fn a_flag_is_a_file_and_no_flag_a_failure() -> goondan::Result<()> {
    use goondan::json;
    use goondan::middleware::ToolCallStatus;
    use goondan::testing::Chat;

    let mut chat = Chat::with::<flags::Extension>(json!({})).start().await?;
    let flag = chat.call("flags__draw", json!({ "name": "Japan" })).await?;
    assert_eq!(flag.output(), Some(&json!("A red disc on white:\n[image/gif flag.gif]")));
    assert!(!flag.to_reply().unwrap().is_error());
    let none = chat.call("flags__draw", json!({ "name": "Atlantis" })).await?;
    assert_eq!(none.status(), ToolCallStatus::Error);
    assert_eq!(none.error().unwrap().code.as_deref(), Some("E_TOOL_FAILED"));
    Ok(())
}
