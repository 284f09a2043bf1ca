//! The messages of a server behind a pair of pipes, one in each line.

use std::io;

use super::protocol::RoleClient;
use super::protocol::service::TxJsonRpcMessage;
use super::protocol::transport::Transport;
use super::protocol::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty, empty};

use super::message::{self, Message};
use crate::config::Sizes;

/// The length of each end of a line that is too long that is kept, to find which request it answers.
const END: usize = 1024;

/// A transport like the one of `rmcp`, which writes to the pipe, but with a limit for reading: a line that is too
/// long, or cannot be read, is the answer to its request, and not lost.
pub(super) struct Pipes<R, W: AsyncWrite> {
    read: BufReader<R>,
    line: Line,
    sizes: Sizes,
    write: AsyncRwTransport<RoleClient, Empty, W>,
}

/// A line, as far as it has arrived. It stays when a read is cancelled.
#[derive(Default)]
struct Line {
    /// The line, or the beginning of one that is too long.
    text: Vec<u8>,
    /// The end of one that is too long.
    end: Option<Vec<u8>>,
    is_answered: bool,
}

impl Line {
    /// Adds bytes to the line, which keeps at most `limit`.
    fn add(&mut self, bytes: &[u8], limit: usize) {
        let Some(end) = &mut self.end else {
            self.text.extend_from_slice(bytes);
            if self.text.len() > limit {
                let end = self.text.split_off(self.text.len().saturating_sub(END));
                // The last member may be cut off.
                let head = &self.text[..END.min(self.text.len())];
                self.text = head[..head.iter().rposition(|byte| *byte == b',').unwrap_or_default()].to_owned();
                self.end = Some(end);
            }
            return;
        };
        end.extend_from_slice(bytes);
        end.drain(..end.len().saturating_sub(END));
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Pipes<R, W> {
    pub(super) fn new(read: R, write: W, sizes: Sizes) -> Self {
        let write = AsyncRwTransport::new(empty(), write);
        Self { read: BufReader::new(read), line: Line::default(), sizes, write }
    }

    /// Reads the answer in a line that has arrived, whole or far enough.
    fn answer(&mut self, is_whole: bool) -> Option<Message> {
        let Line { text, end, is_answered } = &self.line;
        let Some(end) = end else {
            let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
            // Servers also write lines that are no messages.
            return if is_whole { message::read(text, &self.sizes) } else { None };
        };
        if *is_answered {
            return None;
        }
        let id = message::id(text).or_else(|| is_whole.then(|| message::id_at_end(end))?);
        let error = message::error(id, &message::reason(super::json::Excess::Size, &self.sizes));
        self.line.is_answered = error.is_some();
        error
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Transport<RoleClient> for Pipes<R, W> {
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.write.send(message)
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            let Self { read, line, sizes, .. } = self;
            let bytes = read.fill_buf().await.ok().filter(|bytes| !bytes.is_empty())?;
            let length = bytes.iter().position(|byte| *byte == b'\n');
            line.add(&bytes[..length.unwrap_or(bytes.len())], sizes.message);
            let read_bytes = length.map_or(bytes.len(), |length| length + 1);
            read.consume(read_bytes);
            let message = self.answer(length.is_some());
            if length.is_some() {
                self.line = Line::default();
            }
            if message.is_some() {
                return message;
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.close().await
    }
}
