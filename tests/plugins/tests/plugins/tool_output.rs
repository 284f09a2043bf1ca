//! The extension `tool-output`: what the model reads of long results, and where the whole of them is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use goondan::conversation::{Part, Role, ToolOutput};
use goondan::middleware::ToolCallResult;
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::both_linkages;

use crate::linkage::WithPlugin;

/// Tools with results of any kind.
#[goondan::extension(name = "big")]
mod big {
    use goondan::conversation::FilePart;
    use goondan::prelude::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Reply {
        json: goondan::Value,
    }

    /// Returns JSON.
    #[tool]
    async fn json(reply: Reply) -> Result<goondan::Value> {
        Ok(reply.json)
    }

    /// Says that it failed, with a text.
    #[tool]
    async fn failed(reply: Reply) -> Result<ToolReply> {
        Ok(ToolReply::from(reply.json).failed())
    }

    /// Returns an error with a text.
    #[tool]
    async fn error(reply: Reply) -> Result<()> {
        Err(Error::msg(reply.json.to_string()))
    }

    /// Returns texts with a file after each.
    #[tool]
    async fn content(reply: Reply) -> Result<ToolReply> {
        let texts: Vec<String> = goondan::json::from_value(reply.json)?;
        let file = || FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named("dot.png").into();
        Ok(ToolReply::content(texts.into_iter().flat_map(|text| [text.into(), file()])))
    }

    /// Returns a text, after it has replaced the working directory.
    #[tool]
    async fn obstruct(reply: Reply, ctx: &ToolContext<'_>) -> Result<goondan::Value> {
        std::fs::remove_dir_all(ctx.workdir()?)?;
        std::fs::write(ctx.workdir()?, "")?;
        Ok(reply.json)
    }

    /// Makes a link to a file, and returns a text.
    #[tool]
    async fn link(reply: Reply, ctx: &ToolContext<'_>) -> Result<goondan::Value> {
        let name = format!("output-big__link-{}-1.txt", ctx.call_id());
        std::os::unix::fs::symlink(ctx.workdir()?.join("elsewhere"), ctx.workdir()?.join(name))?;
        Ok(reply.json)
    }
}

async fn chat(config: Value) -> Chat {
    let chat = Chat::with::<big::Extension>(json!({}));
    chat.agent(|agent| agent.plugin("tool-output", "tool-output", config)).start().await.unwrap()
}

async fn call(chat: &mut Chat, tool: &str, reply: &Value) -> ToolCallResult {
    chat.call(&format!("big__{tool}"), json!({ "json": reply })).await.unwrap()
}

fn text(result: &ToolCallResult) -> String {
    result.to_tool_output().to_text().into_owned()
}

/// Returns the files that a text names.
fn files(text: &str) -> Vec<PathBuf> {
    let names = text.split("The whole text is in the file ").skip(1);
    names.map(|rest| PathBuf::from(rest.split_once(": read").unwrap().0)).collect()
}

fn read(path: &Path) -> String {
    assert!(path.is_absolute(), "{path:?}");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    fs::read_to_string(path).unwrap()
}

/// A text whose characters have three bytes.
fn long(characters: usize) -> String {
    "한".repeat(characters)
}

#[both_linkages]
async fn of_a_long_text_the_model_reads_both_ends_and_where_the_whole_is() {
    let mut chat = chat(json!({})).await;
    let fits = long(40_000);
    assert_eq!(text(&call(&mut chat, "json", &json!(fits)).await), fits);
    let lines: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
    let short = text(&call(&mut chat, "json", &json!(lines)).await);
    assert!((39_900..=40_000).contains(&short.chars().count()), "{}", short.chars().count());
    assert!(short.starts_with("line 0\nline 1\n") && short.ends_with("\nline 19999\n"));
    let [file] = &files(&short)[..] else { panic!("{short}") };
    assert_eq!(read(file), lines);
    let messages = chat.messages().await;
    let result = messages.iter().rfind(|message| message.role() == Role::Tool).unwrap();
    assert!(json::to_string(&**result).unwrap().len() < 140_000, "the whole is not in the conversation");
}

#[both_linkages]
async fn long_texts_in_json_are_shortened_where_they_are() {
    let mut chat = chat(json!({ "maxCharacters": 4000 })).await;
    let output = json!({ "code": 1, "stdout": long(9000), "stderr": long(8000), "lines": ["short", "\"\n"] });
    let short = call(&mut chat, "json", &output).await.output().unwrap().clone();
    assert_eq!((&short["code"], &short["lines"]), (&output["code"], &output["lines"]));
    for member in ["stdout", "stderr"] {
        let [file] = &files(short[member].as_str().unwrap())[..] else { panic!("{short}") };
        assert_eq!(json!(read(file)), output[member]);
    }
    let length = short.to_string().chars().count();
    assert!((3800..=4000).contains(&length), "{length}");
}

#[both_linkages]
async fn a_long_list_is_in_the_file_as_json_with_lines() {
    let mut chat = chat(json!({ "maxCharacters": 4000 })).await;
    let list: Value = (0..2000).map(|number| json!({ "number": number })).collect();
    let short = text(&call(&mut chat, "json", &list).await);
    assert!(short.chars().count() <= 4000 && short.contains("\"number\": 0\n"), "{short}");
    let [file] = &files(&short)[..] else { panic!("{short}") };
    assert_eq!(file.extension().unwrap(), "json");
    let whole = read(file);
    assert_eq!(json::from_str::<Value>(&whole).unwrap(), list);
    assert_eq!(whole.lines().nth(2).unwrap().trim(), "\"number\": 0");
}

#[both_linkages]
async fn files_of_a_reply_stay_in_their_places() {
    let mut chat = chat(json!({ "maxCharacters": 3000 })).await;
    let texts = ["first".to_owned(), long(5000), "last".to_owned()];
    let short = call(&mut chat, "content", &json!(texts)).await.to_tool_output();
    let ToolOutput::Content(parts) = short else { panic!("{short:?}") };
    let described = parts.iter().map(|part| match part {
        Part::Text(part) if part.text.len() < 10 => part.text.clone(),
        Part::Text(part) => read(&files(&part.text)[0]),
        Part::File(file) => format!("{:?}", file.name),
        part => panic!("{part:?}"),
    });
    let image = "Some(\"dot.png\")";
    assert_eq!(described.collect::<Vec<_>>(), [&texts[0], image, &texts[1], image, &texts[2], image]);
    // So many texts that none of them is long: all of them in one file, and all files after them.
    let texts = vec![long(100); 50];
    let short = call(&mut chat, "content", &json!(texts)).await.to_tool_output();
    let ToolOutput::Content(parts) = short else { panic!("{short:?}") };
    let (Part::Text(text), 51) = (&parts[0], parts.len()) else { panic!("{parts:?}") };
    assert_eq!(read(&files(&text.text)[0]), texts.join("\n"));
}

#[both_linkages]
async fn a_failed_reply_is_shortened_and_stays_failed() {
    let mut chat = chat(json!({ "maxCharacters": 2000 })).await;
    let result = call(&mut chat, "failed", &json!(long(3000))).await;
    assert_eq!(result.error().unwrap().code.as_deref(), Some("E_TOOL_FAILED"));
    assert_eq!(read(&files(&text(&result))[0]), long(3000));
    // The policy of the agent limits the message of an error.
    let result = call(&mut chat, "error", &json!(long(3000))).await;
    assert_eq!((result.error().unwrap().message.chars().count(), files(&text(&result)).len()), (1000, 0));
}

#[both_linkages]
async fn exempt_tools_answer_with_all_they_have() {
    let mut chat = chat(json!({ "maxCharacters": 2000, "exempt": ["big__j*"] })).await;
    assert_eq!(text(&call(&mut chat, "json", &json!(long(3000))).await), long(3000));
    assert_ne!(text(&call(&mut chat, "failed", &json!(long(3000))).await), long(3000));
}

#[both_linkages]
async fn what_cannot_be_written_is_said_to_be_lost() {
    let mut chat = chat(json!({ "maxCharacters": 2000 })).await;
    let result = call(&mut chat, "obstruct", &json!(long(3000))).await;
    // The tool has done its work: an error would make the model call it again.
    let short = result.output().unwrap().as_str().unwrap();
    assert!(short.contains("They could not be written to a file and are lost: "), "{short}");
    assert!(short.starts_with(&long(500)) && short.ends_with(&long(500)));
    let warned = chat.logs().into_iter().any(|line| line.text == "a long output could not be written to a file");
    assert!(warned, "{:?}", chat.logs());
}

#[both_linkages]
async fn a_link_that_waits_for_the_file_is_not_followed() {
    let mut chat = chat(json!({ "maxCharacters": 2000 })).await;
    let short = text(&call(&mut chat, "link", &json!(long(3000))).await);
    let file = &files(&short)[0];
    assert_eq!(read(file), long(3000));
    assert!(file.to_str().unwrap().ends_with("-2.txt"), "{file:?}");
    assert!(!file.with_file_name("elsewhere").exists());
}
