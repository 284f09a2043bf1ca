//! Streams in `tests/recordings`, written by hand after the references of the providers, with what they mean.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use serde_json::Value;

use super::transport::{Played, Step};

/// How the bytes of a stream arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Whole,
    SingleBytes,
    Crlf,
}

impl Framing {
    pub(crate) const ALL: [Self; 3] = [Self::Whole, Self::SingleBytes, Self::Crlf];
}

/// A file `NAME.jsonl`, one event per line, and `NAME.expected.json` with:
/// - `response`: what the model returns,
/// - `told`: the pieces, if they matter,
/// - `source`: `documented`, if the stream is known from the documentation of the provider alone,
/// - `next`: what of it the next request carries, as the interface writes it.
pub(crate) struct Recording {
    pub(crate) name: String,
    lines: Vec<String>,
    pub(crate) expected: Value,
}

impl Recording {
    /// Returns the recordings of a folder, sorted by name.
    pub(crate) fn all(folder: &str) -> Vec<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(folder);
        let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        paths.sort();
        assert!(!paths.is_empty());
        let recording = |path: PathBuf| {
            let lines = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
            let expected = fs::read_to_string(path.with_extension("expected.json")).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            Self { name, lines, expected: serde_json::from_str(&expected).unwrap() }
        };
        paths.into_iter().map(recording).collect()
    }

    /// Returns the names and the data of the events. Those with a type are named after it, as Anthropic and OpenAI do.
    pub(crate) fn events(&self) -> Vec<(String, String)> {
        let event = |line: &String| {
            let json: Value = serde_json::from_str(line).unwrap_or_default();
            (json["type"].as_str().unwrap_or_default().to_owned(), line.clone())
        };
        self.lines.iter().map(event).collect()
    }

    /// Returns the server-sent events.
    pub(crate) fn stream(&self) -> String {
        let event = |(name, data): (String, String)| {
            let name = if name.is_empty() { name } else { format!("event: {name}\n") };
            format!("{name}data: {data}\n\n")
        };
        self.events().into_iter().map(event).collect()
    }

    /// Returns the response that plays the stream.
    pub(crate) fn played(&self, framing: Framing) -> Played {
        let stream = self.stream();
        let bytes = |bytes: &[u8]| Step::Bytes(Bytes::copy_from_slice(bytes));
        match framing {
            Framing::Whole => Played::events(&stream),
            Framing::Crlf => Played::events(&stream.replace('\n', "\r\n")),
            Framing::SingleBytes => Played::new(200, stream.as_bytes().chunks(1).map(bytes)),
        }
    }
}
