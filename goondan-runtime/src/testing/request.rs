//! A recorded model request, for assertions.

use std::borrow::Cow;
use std::fmt;

use goondan_core::{Content, MessageData, ModelOptions, Part, ToolItem};
use serde_json::Map;

use crate::ports::model::ModelRequest;

/// A request that a model was sent. Its `Debug` prints the [transcript](RecordedRequest::transcript), so that failed
/// assertions are readable.
///
/// ```
/// use goondan::testing::Chat;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> goondan::Result<()> {
/// let chat = Chat::builder().start().await?;
/// chat.say("hello").await?;
/// let request = chat.last_request();
/// assert_eq!(request.messages[0].content.text(), "hello");
/// assert_eq!(
///     format!("{request:?}"),
///     r#"RecordedRequest { system: None, messages: ["user: hello"], tools: [], options: {} }"#
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The instructions of the agent.
    pub system: Option<String>,
    /// The messages, oldest first.
    pub messages: Vec<MessageData>,
    /// The tools that the step offered, in the order of registration.
    pub tools: Vec<ToolItem>,
    /// The options that step middlewares set.
    pub options: ModelOptions,
}

impl RecordedRequest {
    pub(super) fn of(request: &ModelRequest<'_>) -> Self {
        Self {
            system: request.system().map(str::to_owned),
            messages: request.messages().map(Cow::into_owned).collect(),
            tools: request.tools().cloned().collect(),
            options: request.options().cloned().unwrap_or_default(),
        }
    }

    /// Returns the messages as lines such as `user: hello`. Tool calls are in brackets: `assistant: [notes__list {}]`.
    pub fn transcript(&self) -> Vec<String> {
        transcript(&self.messages)
    }

    /// Returns the names of the tools that the step offered.
    pub fn tool_names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }
}

impl fmt::Debug for RecordedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedRequest")
            .field("system", &self.system)
            .field("messages", &self.transcript())
            .field("tools", &self.tool_names())
            .field(
                "options",
                &serde_json::to_value(&self.options).unwrap_or_default().as_object().unwrap_or(&Map::new()),
            )
            .finish()
    }
}

/// Returns one line for each message.
pub(super) fn transcript<'a>(messages: impl IntoIterator<Item = &'a MessageData>) -> Vec<String> {
    messages.into_iter().map(|message| format!("{}: {}", message.role.as_str(), text(&message.content))).collect()
}

fn text(content: &Content) -> String {
    content.parts().iter().map(part).collect::<Vec<_>>().join(" ")
}

fn part(part: &Part) -> String {
    match part {
        Part::ToolCall(_) => format!("[{part}]"),
        Part::Reasoning(_) => format!("[reasoning {part}]"),
        _ => part.to_string(),
    }
}
