//! Messages that are heard as they are read: announcements, the progress of calls, and lines for the log.

use std::sync::Arc;

use goondan::extension::LogLevel;
use goondan::{Value, json};
use goondan_text::visible;
use tokio::sync::watch;

use super::protocol::RoleClient;
use super::protocol::model::{JsonRpcMessage, ServerNotification};
use super::protocol::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use super::protocol::transport::Transport;
use super::running::{RunningCalls, Said};
use super::users::Users;

/// The most characters of a line that a server writes to the log.
const LONGEST_LINE: usize = 2000;

/// The number of times that a server has announced a change of its offers.
///
/// It is counted where messages are read, in their order, because the tasks of `rmcp` in which notifications are
/// handled can be overtaken by the answer that the server sent after one.
pub(crate) type Announced = watch::Sender<u64>;

/// A transport that counts the announcements among the messages that are read from it, and passes on the words that
/// the server says of itself and of calls. Here, because the tasks of `rmcp` in which notifications are handled can
/// be overtaken.
pub(super) struct Hearing<T> {
    pub(super) inner: T,
    pub(super) announced: Arc<Announced>,
    pub(super) users: Users,
    pub(super) calls: RunningCalls,
}

impl<T> Hearing<T> {
    fn heard(&self, notification: &ServerNotification) {
        match notification {
            ServerNotification::ToolListChangedNotification(_)
            | ServerNotification::ResourceListChangedNotification(_) => {
                self.announced.send_modify(|count| *count += 1);
            }
            ServerNotification::ProgressNotification(notification) => {
                let params = &notification.params;
                let text = params.message.clone().unwrap_or_default();
                self.calls.progress(&params.progress_token.0.to_string(), params.progress, params.total, text);
            }
            // By its JSON: the newest version of the protocol has given up the type, and servers still log.
            ServerNotification::LoggingMessageNotification(notification) => {
                self.logged(&json::to_value(&notification.params).unwrap_or_default());
            }
            _ => {}
        }
    }

    /// Writes a line of the server, which is JSON, to the log of the call that runs, or of the extensions that use it.
    fn logged(&self, line: &Value) {
        let data = line["data"].as_str().map_or_else(|| line["data"].to_string(), str::to_owned);
        let text: String = visible(&data).chars().take(LONGEST_LINE).collect();
        let logger = line["logger"].as_str().map(|name| format!("{}: ", visible(name))).unwrap_or_default();
        let text = format!("MCP server: {logger}{text}");
        let level = match line["level"].as_str() {
            Some("debug") => LogLevel::Debug,
            Some("info" | "notice") => LogLevel::Info,
            Some("warning") => LogLevel::Warn,
            _ => LogLevel::Error,
        };
        if self.calls.tell(Said::Logged(level, text.clone())) {
            return;
        }
        let users = self.users.lock().clone();
        users.iter().for_each(|(_, api)| api.logger().log(level, &text));
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Hearing<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await;
        if let Some(JsonRpcMessage::Notification(notice)) = &message {
            self.heard(&notice.notification);
        }
        message
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
