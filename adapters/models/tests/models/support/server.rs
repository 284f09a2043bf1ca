//! An HTTP server over loopback that plays prepared replies, and can misbehave in every way that matters.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A server, which ends with the test. The n-th request gets the n-th reply; the last one is repeated.
pub(crate) struct Server {
    url: String,
    requests: Arc<Mutex<Vec<Received>>>,
    connections: Arc<Mutex<usize>>,
    /// Notified when a client closes a connection on which nothing comes any more.
    closed: Arc<Notify>,
    task: JoinHandle<()>,
}

/// A request that the server has read.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// How a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// As it should.
    Whole,
    /// The connection is closed without the end of the body.
    Closed,
    /// The connection is reset.
    Reset,
    /// Nothing comes any more.
    Stalled,
}

/// A reply.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    head: String,
    body: Vec<u8>,
    /// The size of the pieces in which the body is sent.
    piece: usize,
    end: End,
    /// Whether the body is repeated without an end.
    endless: bool,
}

impl Reply {
    /// A stream of events, given as text with `\n` at the ends of lines.
    pub(crate) fn events(text: &str) -> Self {
        Self::new("200 OK", text).header("content-type", "text/event-stream")
    }

    /// The same events, each with one member, as an event stream of AWS.
    pub(crate) fn framed(text: &str) -> Self {
        let body = text.lines().filter_map(|line| line.strip_prefix("data: ")).flat_map(frame).collect();
        let framed = Self { body, ..Self::new("200 OK", "") };
        framed.header("content-type", "application/vnd.amazon.eventstream").header("x-amzn-requestid", "aws-1")
    }

    /// Changes the last byte of the body.
    pub(crate) fn corrupted(mut self) -> Self {
        *self.body.last_mut().unwrap() ^= 1;
        self
    }

    /// A response with a status and a JSON body.
    pub(crate) fn json(status: &str, body: &Value) -> Self {
        Self::new(status, &body.to_string()).header("content-type", "application/json")
    }

    /// A response with a status and a body.
    pub(crate) fn new(status: &str, body: &str) -> Self {
        let head = format!("HTTP/1.1 {status}\r\ntransfer-encoding: chunked\r\n");
        Self { head, body: body.as_bytes().to_vec(), piece: usize::MAX, end: End::Whole, endless: false }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head += &format!("{name}: {value}\r\n");
        self
    }

    /// Sends the body in pieces of `size` bytes, each in a chunk of its own.
    pub(crate) fn in_pieces(self, size: usize) -> Self {
        Self { piece: size, ..self }
    }

    /// Ends lines with `\r\n`.
    pub(crate) fn with_crlf(self) -> Self {
        let body = String::from_utf8(self.body).unwrap().replace('\n', "\r\n").into_bytes();
        Self { body, ..self }
    }

    /// Leaves out the body from `at` on, as a server that ends too early.
    pub(crate) fn cut(mut self, at: usize) -> Self {
        self.body.truncate(at);
        self
    }

    /// Closes the connection instead of ending the body.
    pub(crate) fn closed(self) -> Self {
        Self { end: End::Closed, ..self }
    }

    /// Resets the connection instead of ending the body.
    pub(crate) fn reset(self) -> Self {
        Self { end: End::Reset, ..self }
    }

    /// Sends nothing any more instead of ending the body.
    pub(crate) fn stalled(self) -> Self {
        Self { end: End::Stalled, ..self }
    }

    /// Sends the body over and over.
    pub(crate) fn endless(self) -> Self {
        Self { endless: true, ..self }
    }
}

/// Returns the frame of an event: lengths, a checksum, headers, the payload, a checksum.
fn frame(event: &str) -> Vec<u8> {
    let event: Value = serde_json::from_str(event).unwrap();
    let (name, payload) = event.as_object().unwrap().iter().next().unwrap();
    let (kind, type_name) =
        if name.ends_with("Exception") { ("exception", ":exception-type") } else { ("event", ":event-type") };
    let mut headers = Vec::new();
    for (name, value) in [(type_name, &**name), (":content-type", "application/json"), (":message-type", kind)] {
        headers.push(u8::try_from(name.len()).unwrap());
        headers.extend_from_slice(name.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let mut frame = u32::try_from(headers.len() + payload.len() + 16).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(&u32::try_from(headers.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&headers);
    frame.extend_from_slice(payload.as_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

impl Server {
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let replies: Arc<[Reply]> = replies.into_iter().collect();
        let closed = Arc::new(Notify::new());
        let (known, count, left) = (Arc::clone(&requests), Arc::clone(&connections), Arc::clone(&closed));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                *count.lock().unwrap() += 1;
                tokio::spawn(serve(stream, Arc::clone(&known), Arc::clone(&replies), Arc::clone(&left)));
            }
        });
        Self { url, requests, connections, closed, task }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Received> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a client closes a connection on which nothing comes any more.
    pub(crate) async fn closed(&self) {
        self.closed.notified().await;
    }

    /// Returns how many connections there were.
    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers the requests of one connection until it ends.
async fn serve(mut stream: TcpStream, requests: Arc<Mutex<Vec<Received>>>, replies: Arc<[Reply]>, closed: Arc<Notify>) {
    while let Some(request) = receive(&mut stream).await {
        let reply = {
            let mut requests = requests.lock().unwrap();
            requests.push(request);
            replies[(requests.len() - 1).min(replies.len() - 1)].clone()
        };
        // A client that has what it needs closes the connection.
        if send(&mut stream, &reply).await.is_err() {
            return;
        }
        match reply.end {
            End::Whole => {}
            End::Closed => return,
            End::Reset => return stream.set_zero_linger().unwrap(),
            End::Stalled => {
                _ = stream.read(&mut [0]).await;
                return closed.notify_one();
            }
        }
    }
}

async fn send(stream: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(format!("{}\r\n", reply.head).as_bytes()).await?;
    loop {
        for piece in reply.body.chunks(reply.piece.min(reply.body.len().max(1))) {
            stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
            stream.write_all(piece).await?;
            stream.write_all(b"\r\n").await?;
        }
        if !reply.endless {
            break;
        }
    }
    if reply.end == End::Whole {
        stream.write_all(b"0\r\n\r\n").await?;
    }
    Ok(())
}

/// Reads one request; `None` when the client closes the connection.
async fn receive(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break String::from_utf8(bytes.drain(..end + 4).collect()).unwrap();
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: Vec<_> =
        lines.filter_map(|line| line.split_once(": ")).map(|(n, v)| (n.to_lowercase(), v.to_owned())).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    while bytes.len() < length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Received { path, headers, body: serde_json::from_slice(&bytes[..length]).unwrap() })
}
