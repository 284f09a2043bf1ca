//! Records exchanges.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use goondan_core::BundleFile;
use goondan_lock::Lock;
use http::header::CONTENT_TYPE;
use tokio::time::Instant;

use super::format::{self, Content, Exchange, Request, Response};
use super::redact::Redaction;
use crate::http::{Body, Failure, Incoming, Parser};

/// The recorders of this process. Models of several agents can have one file.
static RECORDERS: Lock<Vec<Weak<Recorder>>> = Lock::new(Vec::new());

/// Appends exchanges to a file.
pub(super) struct Recorder {
    path: PathBuf,
    /// Whether exchanges are added to those of an earlier recording.
    adds: bool,
    file: Lock<Writing>,
}

enum Writing {
    NotBegun,
    Begun(File),
    /// A recording with a gap is of no use: every later request fails too.
    Failed(String),
}

impl Recorder {
    /// Returns the recorder of a file, which is shared with another model if it has one.
    pub(super) fn of(path: &Path, adds: bool) -> Arc<Self> {
        let mut recorders = RECORDERS.lock();
        recorders.retain(|recorder| recorder.strong_count() > 0);
        let known = recorders.iter().filter_map(Weak::upgrade).find(|recorder| recorder.path == path);
        known.unwrap_or_else(|| {
            let recorder = Arc::new(Self { path: path.to_owned(), adds, file: Lock::new(Writing::NotBegun) });
            recorders.push(Arc::downgrade(&recorder));
            recorder
        })
    }

    /// Returns why an exchange could not be recorded, if one could not.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match &*self.file.lock() {
            Writing::Failed(why) => Err(format::failure(&self.path, why)),
            Writing::NotBegun | Writing::Begun(_) => Ok(()),
        }
    }

    fn write(&self, exchange: &Exchange, redaction: &Redaction) {
        let mut file = self.file.lock();
        if let Err(why) = self.append(&mut file, exchange, redaction) {
            tracing::error!(cassette = %self.path.display(), why, "an exchange is not recorded");
            *file = Writing::Failed(why);
        }
    }

    fn append(&self, file: &mut Writing, exchange: &Exchange, redaction: &Redaction) -> Result<(), String> {
        let events = match &exchange.response.content {
            Content::Events(events) => &events[..],
            Content::Body(_) => &[],
        };
        // First, because the line and the sum of the pieces of an answer are as large as the answer each.
        let in_pieces = redaction.objection_to_pieces(events.iter().map(|(_, _, data)| &**data));
        let line = serde_json::to_string(exchange).map_err(|error| error.to_string())? + "\n";
        if let Some(why) = redaction.objection(&line).or(in_pieces) {
            return Err(format!("{why}, and is not recorded; `redact` of the cassette replaces it"));
        }
        let written = match file {
            Writing::Failed(_) => Ok(()),
            Writing::Begun(file) => file.write_all(line.as_bytes()),
            Writing::NotBegun => self.begin(&line).map(|begun| *file = Writing::Begun(begun)),
        };
        written.map_err(|error| format!("the exchange cannot be written: {error}"))
    }

    /// Replaces the file by one with this line, and the earlier ones if they are kept. Whenever the process is killed,
    /// one of the two is there.
    fn begin(&self, line: &str) -> io::Result<File> {
        let earlier =
            if self.adds { format::read(&self.path, false).map_err(io::Error::other)?.text } else { String::new() };
        let earlier = if earlier.is_empty() { format::head() } else { earlier };
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        if let Ok(other) = BundleFile::open(&self.path) {
            lock(&other.into_file())?;
        }
        let new = self.path.with_extension(format!("jsonl.{}", std::process::id()));
        // A file of this name was left by a process that was killed. A link is not followed.
        _ = fs::remove_file(&new);
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        lock(&file)?;
        file.write_all(format!("{earlier}{line}").as_bytes())?;
        fs::rename(&new, &self.path)?;
        Ok(file)
    }
}

/// Locks a file until it is closed.
fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::other("another process records to it"),
        TryLockError::Error(error) => error,
    })
}

/// An exchange that is being recorded.
pub(crate) struct Recording {
    recorder: Arc<Recorder>,
    redaction: Redaction,
    request: Request,
    asked: Instant,
}

impl Recording {
    pub(super) fn new(recorder: Arc<Recorder>, redaction: Redaction, request: Request) -> Self {
        Self { recorder, redaction, request, asked: Instant::now() }
    }

    /// Returns the response, which is recorded when it has ended, was broken, or is not read any more.
    pub(crate) fn of(self, response: Incoming) -> Incoming {
        let Incoming { status, headers, body } = response;
        let recorded = self.redaction.headers(&headers);
        let is_stream = status.is_success()
            && headers.get(CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let arrived = match is_stream {
            true => Arrived::Events(Events { parser: Parser::default(), events: Vec::new(), before: self.asked }),
            false => Arrived::Bytes(Vec::new()),
        };
        let recording = Some((self, recorded));
        let body = Recorded { body, status: status.as_u16(), recording, arrived };
        Incoming { status, headers, body: Box::pin(body) }
    }
}

/// A body that is recorded.
struct Recorded {
    body: Body,
    status: u16,
    /// With the headers of the response. `None` when it is written.
    recording: Option<(Recording, std::collections::BTreeMap<String, String>)>,
    arrived: Arrived,
}

/// The part of a body that has arrived. Comments of a stream are not kept: some servers send one every second.
enum Arrived {
    Events(Events),
    Bytes(Vec<u8>),
}

/// The events of a stream, with their times.
struct Events {
    parser: Parser,
    events: Vec<(u64, String, String)>,
    /// When the last event arrived, or the request was sent.
    before: Instant,
}

impl Recorded {
    fn add(&mut self, bytes: &[u8]) {
        let Some((Recording { redaction, .. }, _)) = &self.recording else { return };
        match &mut self.arrived {
            Arrived::Events(events) => events.add(bytes, redaction),
            Arrived::Bytes(arrived) => arrived.extend_from_slice(bytes),
        }
    }

    fn end(&mut self, broken: Option<&str>) {
        let Some((Recording { recorder, redaction, request, .. }, headers)) = self.recording.take() else { return };
        let content = match &mut self.arrived {
            Arrived::Events(arrived) => Content::Events(std::mem::take(&mut arrived.events)),
            Arrived::Bytes(bytes) => Content::Body(redaction.text(&String::from_utf8_lossy(bytes))),
        };
        let broken = broken.map(|why| redaction.text(why));
        let response = Response { status: self.status, headers, content, broken };
        recorder.write(&Exchange { request, response }, &redaction);
    }
}

impl Stream for Recorded {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = std::task::ready!(self.body.as_mut().poll_next(cx));
        match &next {
            Some(Ok(bytes)) => self.add(bytes),
            Some(Err(error)) => self.end(Some(&error.to_string())),
            None => self.end(None),
        }
        Poll::Ready(next)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.end(Some("the rest was not read"));
    }
}

impl Events {
    fn add(&mut self, bytes: &[u8], redaction: &Redaction) {
        let now = Instant::now();
        self.parser.push(bytes);
        while self.parser.next() {
            let event = self.parser.event();
            let after = u64::try_from(now.duration_since(self.before).as_millis()).unwrap_or(u64::MAX);
            self.before = now;
            self.events.push((after, redaction.text(&event.name), redaction.text(&event.data)));
        }
    }
}
