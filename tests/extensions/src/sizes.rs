//! Tools whose results are of any size, and a middleware that makes arguments and results of any size.

use std::hint::black_box;

use goondan::conversation::FilePart;
use goondan::prelude::*;
use goondan::tool::{ReplyPart, ToolReply};
use goondan::{Map, Value, json};

use crate::Log;

/// Makes results.
pub struct Sizes {
    log: Option<Log>,
    change: Option<Change>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SizesConfig {
    log: Option<Log>,
    /// What the middleware makes as large as `bytes` of the arguments.
    change: Option<Change>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Change {
    Args,
    Result,
    Error,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Wanted {
    /// How large the result is.
    bytes: usize,
    /// Whether it is returned, or only made.
    returned: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    number: usize,
}

/// A text of lines.
fn text(bytes: usize) -> String {
    const LINE: &str = "a line of the result\n";
    LINE.repeat(bytes.div_ceil(LINE.len()))
}

impl Wanted {
    /// Returns what is returned: what was made, or next to nothing.
    fn of<T: Default>(&self, made: T) -> T {
        let made = black_box(made);
        if self.returned { made } else { T::default() }
    }

    fn of_reply(&self, made: ToolReply) -> ToolReply {
        self.of(Some(made)).unwrap_or_else(|| ToolReply::text("made"))
    }
}

#[goondan::extension(name = "sizes")]
impl Sizes {
    #[init]
    fn new(config: SizesConfig) -> Self {
        Self { log: config.log, change: config.change }
    }

    /// A reply that is a text.
    #[tool(effect = read)]
    async fn text(&self, wanted: Wanted) -> Result<ToolReply> {
        Ok(wanted.of_reply(ToolReply::text(text(wanted.bytes))))
    }

    /// A text that is converted to a reply.
    #[tool(effect = read)]
    async fn string(&self, wanted: Wanted) -> Result<String> {
        Ok(wanted.of(text(wanted.bytes)))
    }

    /// Rows that are converted to a reply.
    #[tool(effect = read)]
    async fn rows(&self, wanted: Wanted) -> Result<Vec<Row>> {
        let row = |number| Row { name: text(200), number };
        Ok(wanted.of((0..wanted.bytes.div_ceil(200)).map(row).collect()))
    }

    /// The same on a thread of its own.
    #[tool(effect = read, blocking)]
    fn slowly(&self, wanted: Wanted) -> Result<String> {
        Ok(wanted.of(text(wanted.bytes)))
    }

    /// A reply that is JSON.
    #[tool(effect = read)]
    async fn json(&self, wanted: Wanted) -> Result<ToolReply> {
        let member = |number: usize| (number.to_string(), Value::from(text(200)));
        let object = (0..wanted.bytes.div_ceil(200)).map(member).collect::<Map<_, _>>();
        Ok(wanted.of_reply(ToolReply::json(Value::Object(object))?))
    }

    /// A reply with many parts, of a tool that failed.
    #[tool(effect = read)]
    async fn parts(&self, wanted: Wanted) -> Result<ToolReply> {
        let parts = (0..wanted.bytes.div_ceil(200)).map(|_| ReplyPart::from(text(200)));
        Ok(wanted.of_reply(ToolReply::content(parts).failed()))
    }

    /// A reply with files of 4 MB.
    #[tool(effect = read)]
    async fn files(&self, wanted: Wanted) -> Result<ToolReply> {
        let file = |_| ReplyPart::from(FilePart::from_bytes("application/octet-stream", &vec![7; 4 << 20]));
        Ok(wanted.of_reply(ToolReply::content((0..wanted.bytes.div_ceil(4 << 20)).map(file))))
    }

    /// Logs when it begins and ends, and lets others run between.
    #[tool(effect = read)]
    async fn wait(&self) -> Result<()> {
        for line in ["begun", "ended"] {
            self.log.iter().for_each(|log| log.write(line));
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    #[middleware(toolCall)]
    async fn change(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let bytes = ctx.args().get("bytes").and_then(Value::as_u64).unwrap_or_default() as usize;
        if self.change == Some(Change::Args) {
            ctx.args_mut().insert("more".to_owned(), text(bytes).into());
        }
        let mut result = next.run(ctx).await?;
        match self.change {
            Some(Change::Result) => result.set_output(json!({ "more": text(bytes) })),
            Some(Change::Error) => result.set_error(Error::new("E_OWN", text(bytes))),
            Some(Change::Args) | None => {}
        }
        Ok(result)
    }
}
