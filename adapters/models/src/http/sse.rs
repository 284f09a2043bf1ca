//! Splits bytes into server-sent events.

use std::borrow::Cow;
use std::ops::Range;
use std::str::from_utf8;

/// Reads server-sent events from bytes, however they are cut. Each byte is searched once, and an event borrows the
/// buffer in which it arrived, so that reading one allocates nothing.
///
/// Ids and times of reconnection are ignored: an answer cannot be continued on another connection. So are comments, and
/// events without data, as the [specification] says.
///
/// [specification]: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
#[derive(Debug, Default)]
pub(crate) struct Parser {
    buffer: Vec<u8>,
    /// Where the event begins that is read. The places below are relative to it.
    start: usize,
    /// Where its next line begins, and how far the end of that line has been searched.
    line: usize,
    searched: usize,
    name: Vec<u8>,
    data: Option<Range<usize>>,
    is_complete: bool,
    /// Whether a line ended with a carriage return, which a line feed may follow.
    after_return: bool,
    /// Whether the first line has been read, which a byte order mark may precede.
    begun: bool,
}

/// A server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Its name, which is empty if it has none.
    pub name: Cow<'a, str>,
    /// Its data, with a line feed between lines.
    pub data: Cow<'a, str>,
}

impl Parser {
    /// Adds bytes, after [`next`](Self::next) has returned `false`.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        // The moved bytes have arrived with the end of an event, so no byte is moved twice.
        self.buffer.drain(..std::mem::take(&mut self.start));
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns how many bytes have arrived since the last event.
    pub(crate) fn pending(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Goes to the next event. Returns `false` if its end has not arrived.
    pub(crate) fn next(&mut self) -> bool {
        if self.is_complete {
            self.begin();
        }
        while let Some(line) = self.next_line() {
            if !line.is_empty() {
                self.add(line);
            } else if self.data.is_some() {
                self.is_complete = true;
                return true;
            } else {
                self.begin();
            }
        }
        false
    }

    /// Returns the event that [`next`](Self::next) went to. Bytes that are not text are replaced by U+FFFD.
    pub(crate) fn event(&self) -> Event<'_> {
        let data = self.data.as_ref().map_or(&[][..], |data| &self.buffer[self.start..][data.clone()]);
        Event { name: text(&self.name), data: text(data) }
    }

    /// Begins an event with the next line.
    fn begin(&mut self) {
        self.start += std::mem::take(&mut self.line);
        self.searched = 0;
        self.name.clear();
        self.data = None;
        self.is_complete = false;
    }

    /// Returns the next line without its end, if that has arrived.
    fn next_line(&mut self) -> Option<Range<usize>> {
        let bytes = &self.buffer[self.start..];
        if self.after_return {
            let is_feed = *bytes.get(self.line)? == b'\n';
            self.line += usize::from(is_feed);
            self.searched = self.line;
            self.after_return = false;
        }
        let Some(length) = bytes[self.searched..].iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.searched = bytes.len();
            return None;
        };
        let mut line = self.line..self.searched + length;
        self.after_return = bytes[line.end] == b'\r';
        self.line = line.end + 1;
        self.searched = self.line;
        if !std::mem::replace(&mut self.begun, true) && bytes[line.clone()].starts_with("\u{feff}".as_bytes()) {
            line.start += '\u{feff}'.len_utf8();
        }
        Some(line)
    }

    /// Adds a line to the event.
    fn add(&mut self, line: Range<usize>) {
        let event = &mut self.buffer[self.start..];
        let colon = event[line.clone()].iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let mut value = (line.start + colon + 1).min(line.end)..line.end;
        value.start += usize::from(event[value.clone()].starts_with(b" "));
        match &event[line.start..line.start + colon] {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(&event[value]);
            }
            b"data" => match &mut self.data {
                None => self.data = Some(value),
                Some(data) => {
                    // The lines of the data become neighbours, in place.
                    event[data.end] = b'\n';
                    event.copy_within(value.clone(), data.end + 1);
                    data.end += 1 + value.len();
                }
            },
            _ => {}
        }
    }
}

/// Returns bytes as text, which they nearly always are.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        for chunk in chunks {
            parser.push(chunk);
            while parser.next() {
                let Event { name, data } = parser.event();
                events.push((name.into_owned(), data.into_owned()));
            }
        }
        events
    }

    #[test]
    fn lines_become_events_however_they_end_and_are_cut() {
        let stream = "\u{feff}: a comment\n\nevent: a\ndata: one\nevent: b\ndata:  two, and more\ndata\ndata:\n\n\
                      event: nothing\n\nid: 7\nretry: 1\nother: x\ndata:x: y\n\ndata: 한\n\n\ndata: lost";
        let expected = [("b", "one\n two, and more\n\n"), ("", "x: y"), ("", "한")];
        let expected = expected.map(|(name, data)| (name.to_owned(), data.to_owned()));
        for end in ["\n", "\r\n", "\r"] {
            let stream = stream.replace('\n', end).into_bytes();
            for length in 1..stream.len() {
                let chunks: Vec<_> = stream.chunks(length).collect();
                assert_eq!(events(&chunks), expected, "{end:?}, {length}");
            }
        }
    }

    #[test]
    fn what_is_not_text_is_replaced() {
        let replaced = |name: &str, data: &str| [(name.to_owned(), data.to_owned())];
        assert_eq!(events(&[b"data: a\xffb\n\n"]), replaced("", "a\u{fffd}b"));
        assert_eq!(events(&[b"event: \xc3\ndata: x\n\n"]), replaced("\u{fffd}", "x"));
    }

    #[test]
    fn only_the_event_that_arrives_is_kept() {
        let mut parser = Parser::default();
        for _ in 0..1_000 {
            parser.push(b"\n\ndata: a piece of text\n\ndata: a piece");
            while parser.next() {}
            assert_eq!(parser.pending(), "data: a piece".len());
        }
        assert!(parser.buffer.capacity() < 256, "{}", parser.buffer.capacity());
    }
}
