//! Turns the event streams of AWS into server-sent events.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use crc32fast::Hasher;
use futures_core::Stream;
use http::HeaderValue;
use http::header::CONTENT_TYPE;

use super::client::{Body, Incoming};

/// The content type of event streams.
const FRAMED: &str = "application/vnd.amazon.eventstream";

/// Returns a response whose body is a stream of server-sent events if it is framed as an event stream of AWS; others
/// are returned as they are.
///
/// An event becomes `data: {"<its type>":<its payload>}`, which is how AWS documents the events, as a union. So does an
/// exception. A report of a stream in headers becomes `{"error":{"code":…,"message":…}}`.
pub fn unframed(response: Incoming) -> Incoming {
    let Incoming { status, mut headers, body } = response;
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.trim_start().starts_with(FRAMED)) {
        return Incoming { status, headers, body };
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    let body = Box::pin(Unframed { body, frames: Frames::default(), broken: None });
    Incoming { status, headers, body }
}

/// A body whose frames become server-sent events.
struct Unframed {
    body: Body,
    frames: Frames,
    /// Why the rest cannot be read, after the part before it.
    broken: Option<BadFrame>,
}

impl Stream for Unframed {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(broken) = &this.broken {
            return Poll::Ready(Some(Err(broken.clone().into())));
        }
        let Some(bytes) = ready!(this.body.as_mut().poll_next(cx)).transpose()? else { return Poll::Ready(None) };
        let mut events = Vec::with_capacity(bytes.len());
        this.broken = this.frames.read(&bytes, &mut events).err();
        // Bytes that complete nothing are an empty piece: the provider is not silent.
        Poll::Ready(Some(Ok(events.into())))
    }
}

/// The lengths of a frame, and their checksum.
const PRELUDE: usize = 12;

/// A checksum.
const CHECKSUM: usize = 4;

/// The longest headers of a frame.
const LONGEST_HEADERS: usize = 128 << 10;

/// Reads frames, however their bytes are cut. Payloads are passed on as they arrive, so that nothing but the headers of
/// a frame is held; the blank line that ends an event follows only when the checksum of its frame is right.
#[derive(Default)]
struct Frames {
    state: State,
    /// The bytes of the current part that have arrived.
    part: Vec<u8>,
    /// The checksum of the frame so far.
    checksum: Hasher,
}

/// The part of a frame that is read.
#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Prelude,
    Headers {
        length: usize,
        payload: usize,
    },
    Payload {
        left: usize,
        /// Whether the payload is of an event that is passed on.
        is_event: bool,
    },
    Checksum {
        is_event: bool,
    },
}

impl Frames {
    /// Adds the events of `bytes` to `events`.
    fn read(&mut self, mut bytes: &[u8], events: &mut Vec<u8>) -> Result<(), BadFrame> {
        loop {
            self.state = match self.state {
                State::Prelude => {
                    let Some(prelude) = self.collect(PRELUDE, &mut bytes) else { return Ok(()) };
                    let (lengths, checksum) = prelude.split_at(PRELUDE - CHECKSUM);
                    if crc32fast::hash(lengths) != number(checksum) {
                        return Err(BadFrame("the checksum of a frame's lengths is wrong"));
                    }
                    let (total, length) = (length_of(&lengths[..4]), length_of(&lengths[4..]));
                    let payload = total.checked_sub(PRELUDE + CHECKSUM).and_then(|rest| rest.checked_sub(length));
                    let Some(payload) = payload.filter(|_| length <= LONGEST_HEADERS) else {
                        return Err(BadFrame("the lengths of a frame contradict each other"));
                    };
                    self.checksum = Hasher::new();
                    self.checksum.update(&prelude);
                    State::Headers { length, payload }
                }
                State::Headers { length, payload } => {
                    let Some(headers) = self.collect(length, &mut bytes) else { return Ok(()) };
                    self.checksum.update(&headers);
                    let is_event = begin(&headers, payload, events).ok_or(BadFrame("the headers are cut"))?;
                    State::Payload { left: payload, is_event }
                }
                State::Payload { left, is_event } => {
                    let (piece, rest) = bytes.split_at(left.min(bytes.len()));
                    bytes = rest;
                    self.checksum.update(piece);
                    if is_event {
                        // A line break would end the line of the event. In JSON it is between values.
                        events
                            .extend(piece.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
                    }
                    match left - piece.len() {
                        0 => State::Checksum { is_event },
                        left => {
                            self.state = State::Payload { left, is_event };
                            return Ok(());
                        }
                    }
                }
                State::Checksum { is_event } => {
                    let Some(checksum) = self.collect(CHECKSUM, &mut bytes) else { return Ok(()) };
                    if std::mem::take(&mut self.checksum).finalize() != number(&checksum) {
                        return Err(BadFrame("the checksum of a frame is wrong"));
                    }
                    if is_event {
                        events.extend_from_slice(b"}\n\n");
                    }
                    State::Prelude
                }
            };
        }
    }

    /// Returns the next part of a frame, if all of it has arrived.
    fn collect(&mut self, length: usize, bytes: &mut &[u8]) -> Option<Vec<u8>> {
        let missing = length - self.part.len();
        let (piece, rest) = bytes.split_at(missing.min(bytes.len()));
        self.part.extend_from_slice(piece);
        *bytes = rest;
        (self.part.len() == length).then(|| std::mem::take(&mut self.part))
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn length_of(bytes: &[u8]) -> usize {
    usize::try_from(number(bytes)).unwrap_or(usize::MAX)
}

/// Begins the event of a frame with these headers, up to its payload of so many bytes. Returns whether there is one, or
/// nothing if the headers cannot be read.
fn begin(headers: &[u8], payload: usize, events: &mut Vec<u8>) -> Option<bool> {
    let (mut kind, mut name, mut code, mut message) = (None, None, None, None);
    let mut rest = headers;
    while !rest.is_empty() {
        let header = header(&mut rest)?;
        match header.0 {
            b":message-type" => kind = header.1,
            b":event-type" | b":exception-type" => name = header.1,
            b":error-code" => code = header.1,
            b":error-message" => message = header.1,
            _ => {}
        }
    }
    let text = |text: &[u8]| serde_json::Value::from(String::from_utf8_lossy(text)).to_string();
    let begun = match (kind, name) {
        (Some(b"error"), _) if payload == 0 => {
            let [code, message] = [code, message].map(|value| text(value.unwrap_or_default()));
            format!("data: {{\"error\":{{\"code\":{code},\"message\":{message}}}")
        }
        (_, Some(name)) => format!("data: {{{}:{}", text(name), if payload == 0 { "{}" } else { "" }),
        // A kind of frame that does not exist yet.
        (_, None) => return Some(false),
    };
    events.extend_from_slice(begun.as_bytes());
    Some(true)
}

/// Takes a header: its name, and its value if that is a text.
fn header<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let length = usize::from(*take(rest, 1)?.first()?);
    let name = take(rest, length)?;
    let kind = *take(rest, 1)?.first()?;
    let length = match kind {
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4 => 4,
        5 | 8 => 8,
        6 | 7 => length_of(take(rest, 2)?),
        9 => 16,
        _ => return None,
    };
    let value = take(rest, length)?;
    Some((name, (kind == 7).then_some(value)))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

/// A frame that did not arrive as it was sent.
#[derive(Clone, Debug)]
struct BadFrame(&'static str);

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadFrame {}

#[cfg(test)]
mod tests {
    use goondan_covers::covers;

    use super::*;

    /// Returns a frame, after the description of the encoding in the guide of Amazon Transcribe.
    fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in headers {
            head.push(u8::try_from(name.len()).unwrap());
            head.extend_from_slice(name.as_bytes());
            head.push(7);
            head.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
            head.extend_from_slice(value.as_bytes());
        }
        let total = u32::try_from(PRELUDE + head.len() + payload.len() + CHECKSUM).unwrap();
        let mut frame = total.to_be_bytes().to_vec();
        frame.extend_from_slice(&u32::try_from(head.len()).unwrap().to_be_bytes());
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame.extend_from_slice(&head);
        frame.extend_from_slice(payload);
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame
    }

    fn event(name: &str, payload: &str) -> Vec<u8> {
        let headers = [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
        frame(&headers, payload.as_bytes())
    }

    fn stream() -> Vec<u8> {
        let exception = [(":exception-type", "throttlingException"), (":message-type", "exception")];
        let error = [(":message-type", "error"), (":error-code", "Busy"), (":error-message", "not \"now\"")];
        [
            event("messageStart", "{\"role\":\"assistant\",\n\"p\":\"abc\"}"),
            event("contentBlockDelta", "{\"delta\":{\"text\":\"a\\nb 한\"}}"),
            event("empty", ""),
            frame(&[(":message-type", "tomorrow")], b"a payload"),
            frame(&exception, b"{\"message\":\"slow down\"}"),
            frame(&error, b""),
        ]
        .concat()
    }

    const EVENTS: &str = "data: {\"messageStart\":{\"role\":\"assistant\", \"p\":\"abc\"}}\n\n\
                          data: {\"contentBlockDelta\":{\"delta\":{\"text\":\"a\\nb 한\"}}}\n\n\
                          data: {\"empty\":{}}\n\n\
                          data: {\"throttlingException\":{\"message\":\"slow down\"}}\n\n\
                          data: {\"error\":{\"code\":\"Busy\",\"message\":\"not \\\"now\\\"\"}}\n\n";

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (String, Result<(), BadFrame>) {
        let (mut frames, mut events) = (Frames::default(), Vec::new());
        let outcome = pieces.into_iter().try_for_each(|piece| frames.read(piece, &mut events));
        (String::from_utf8_lossy(&events).into_owned(), outcome)
    }

    #[test]
    fn frames_become_events_however_they_are_cut() {
        let stream = stream();
        for length in 1..=stream.len() {
            let (events, outcome) = read(stream.chunks(length));
            assert!(outcome.is_ok(), "{length}: {outcome:?}");
            assert_eq!(events, EVENTS, "{length}");
        }
    }

    /// The example of the encoding without headers and payload, and the one with a payload alone, of the test vectors
    /// that AWS publishes for its SDKs.
    #[test]
    fn the_empty_message_and_a_payload_alone_are_read() {
        let empty = [0, 0, 0, 16, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
        assert!(matches!(read([&empty[..]]), (events, Ok(())) if events.is_empty()));
        let payload = b"{'foo':'bar'}";
        let mut message = vec![0, 0, 0, 29, 0, 0, 0, 0, 0xfd, 0x52, 0x8c, 0x5a];
        message.extend_from_slice(payload);
        message.extend_from_slice(&[0xc3, 0x65, 0x39, 0x36]);
        assert!(matches!(read([&message[..]]), (events, Ok(())) if events.is_empty()));
    }

    /// An event is never told of a frame with a changed bit.
    #[test]
    #[covers("AWS-01")]
    fn a_wrong_bit_ends_no_event() {
        let stream = stream();
        for at in 0..stream.len() {
            for bit in 0..8 {
                let mut wrong = stream.clone();
                wrong[at] ^= 1 << bit;
                let (events, _) = read([&wrong[..]]);
                let whole = &events[..events.rfind("\n\n").map_or(0, |end| end + 2)];
                assert!(EVENTS.starts_with(whole) && whole.len() < EVENTS.len(), "{at}, {bit}: {events}");
            }
        }
    }

    #[test]
    fn a_lost_tail_ends_no_event() {
        let stream = stream();
        for kept in 0..stream.len() {
            let (events, outcome) = read([&stream[..kept]]);
            let events = events.trim_end_matches('\u{fffd}');
            assert!(outcome.is_ok() && EVENTS.starts_with(events) && events.len() < EVENTS.len(), "{kept}: {events}");
        }
    }
}
