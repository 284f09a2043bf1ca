//! Replies that are too large for a conversation: all of one is in a file, and the model reads an excerpt.
// SIZE-01

use std::fmt::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use goondan_text::{LongText, NumberedFile};
use serde::{Deserialize, Serialize};

use super::ToolReply;
use crate::conversation::{FilePart, Part, TextPart, ToolOutput};
use crate::depth::{self, Unwritable};
use crate::error::Result;
use crate::name::ToolCallId;
use crate::size;

/// The size up to which a library does not ask how large a reply may be: the host cuts it then.
const SMALL: usize = 16 << 10;

/// The size limit of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplySize {
    /// The most bytes of its texts and values.
    pub bytes: usize,
    /// The most bytes of its files together, when they are decoded.
    pub files: usize,
}

/// The limit of the reply to one tool call, and the parts of the name of the file that has a larger one.
pub struct ReplyLimit<'a> {
    /// The size limit of the reply.
    pub size: ReplySize,
    /// The tool's name as the model wrote it.
    pub tool: &'a str,
    /// The id of the call.
    pub call: &'a ToolCallId,
    /// Returns the working directory of the conversation.
    pub workdir: &'a dyn Fn() -> Result<&'a Path>,
    /// Returns how many bytes the output files of the conversation may have together.
    pub max_output: &'a dyn Fn() -> u64,
}

impl ReplySize {
    /// For libraries of a host that says nothing of limits.
    pub const UNLIMITED: Self = Self { bytes: usize::MAX, files: usize::MAX };

    /// The most bytes of a conversation's output files together, for libraries of a host that does not say.
    pub const DEFAULT_OUTPUT: u64 = NumberedFile::QUOTA;

    /// The limit of the only call of an answer, whose reply may have so many `bytes`.
    pub fn of_one(bytes: usize) -> Self {
        Self { bytes, files: 4 * FilePart::MAX_INLINE }
    }

    /// Returns the limit of each of several calls of an answer: together, they have the limit of
    /// eight with texts, and of two with files.
    #[must_use]
    pub fn of_each(self, calls: usize) -> Self {
        let share = |limit: usize, of: usize| if calls > of { limit.saturating_mul(of) / calls } else { limit };
        Self { bytes: share(self.bytes, 8), files: share(self.files, 2) }
    }

    fn of(output: &ToolOutput) -> Self {
        match output {
            ToolOutput::Text(text) => Self { bytes: text.len(), files: 0 },
            ToolOutput::Json(value) | ToolOutput::Other(value) => Self { bytes: size::of_json(value), files: 0 },
            ToolOutput::Content(parts) => Self {
                bytes: parts.iter().map(size_of_part).sum(),
                files: parts.iter().filter_map(held).map(size_of_file).sum(),
            },
        }
    }

    fn fits(self, limit: Self) -> bool {
        self.bytes <= limit.bytes && self.files <= limit.files
    }
}

/// Returns the size of a part without the file that it holds.
fn size_of_part(part: &Part) -> usize {
    size::VALUE
        + match part {
            Part::Text(part) => part.text.len(),
            Part::File(file) => {
                let url = if held(part).is_some() { 0 } else { file.url.len() };
                url + file.media_type.len() + file.name.as_ref().map_or(0, String::len)
            }
            Part::Other(members) => size::of_members(members),
            // A reply has no other parts.
            _ => 0,
        }
}

/// Returns the file whose content is in the part.
fn held(part: &Part) -> Option<&FilePart> {
    match part {
        Part::File(file) if file.url.starts_with("data:") => Some(file),
        _ => None,
    }
}

fn size_of_file(file: &FilePart) -> usize {
    size::VALUE + file.url.len() / 4 * 3
}

impl ToolReply {
    /// Returns whether a library may pass on the reply whatever the limit is.
    pub fn is_small(&self) -> bool {
        self.fits(ReplySize { bytes: SMALL, files: SMALL })
    }

    pub(crate) fn fits(&self, limit: ReplySize) -> bool {
        ReplySize::of(self.output()).fits(limit)
    }

    /// Returns the reply, or an excerpt of it if it is larger than the limit.
    pub fn within(self, limit: &ReplyLimit<'_>) -> Self {
        if self.fits(limit.size) {
            return self;
        }
        limit.excerpt(self)
    }

    /// Returns a reply with `value` as JSON, or `None` if a library cannot pass it on whatever the limit is.
    ///
    /// # Errors
    /// When it has no JSON.
    pub(crate) fn small_json<T: Serialize>(value: &T) -> Result<Option<Self>, Unwritable> {
        depth::to_value_of_size(value, SMALL).map(|json| json.map(Self::from))
    }
}

impl ReplyLimit<'_> {
    /// Returns a reply with `value` as JSON, or an excerpt of it if it is too large. Of that, no copy is made.
    ///
    /// # Errors
    /// When it has no JSON.
    #[cold]
    pub(crate) fn json<T: Serialize>(&self, value: &T) -> Result<ToolReply, Unwritable> {
        match depth::to_value_of_size(value, self.size.bytes)? {
            Some(json) => Ok(json.into()),
            None => self.excerpt_of(value).map(ToolReply::text),
        }
    }

    #[cold]
    fn excerpt(&self, reply: ToolReply) -> ToolReply {
        let failed = reply.is_error();
        let reply = match reply.into_output() {
            ToolOutput::Text(text) => {
                let mut long = self.long_text("txt");
                long.add(text.as_bytes());
                ToolReply::text(self.finish(long))
            }
            ToolOutput::Json(value) | ToolOutput::Other(value) => {
                let mut long = self.long_text("json");
                // Writing a value to a text that takes everything does not fail.
                _ = serde_json::to_writer_pretty(&mut long, &value);
                ToolReply::text(self.finish(long))
            }
            ToolOutput::Content(parts) => ToolReply::of_parts(self.content(parts)),
        };
        if failed { reply.failed() } else { reply }
    }

    /// Returns an excerpt of a value that is not converted to JSON.
    fn excerpt_of<T: Serialize>(&self, value: &T) -> Result<String, Unwritable> {
        let mut long = self.long_text("txt");
        if write!(long, "{}", Shown(value)).is_err() {
            long = self.long_text("json");
            depth::write_pretty(value, &mut long)?;
        }
        Ok(self.finish(long))
    }

    /// Returns the parts with one text instead of all, if they are too many or too long, and without the files that are
    /// too much.
    fn content(&self, mut parts: Vec<Part>) -> Vec<Part> {
        let mut left = self.size.files;
        for part in &mut parts {
            let Some(file) = held(part) else { continue };
            match left.checked_sub(size_of_file(file)) {
                Some(rest) => left = rest,
                None => *part = Part::Text(TextPart::new(self.save(file))),
            }
        }
        if parts.iter().map(size_of_part).sum::<usize>() <= self.size.bytes {
            return parts;
        }
        let mut long = self.long_text("txt");
        for part in parts.iter().filter(|part| held(part).is_none()) {
            let line = match part {
                Part::File(file) => format!("{} {}\n", file.label(), file.url),
                part => format!("{part}\n"),
            };
            long.add(line.as_bytes());
        }
        parts.retain(|part| held(part).is_some());
        parts.insert(0, Part::Text(TextPart::new(self.finish(long))));
        parts
    }

    /// Writes a file to the working directory, and returns the text that the model reads instead.
    fn save(&self, file: &FilePart) -> String {
        let encoded = file.url.split_once(";base64,").map(|(_, encoded)| encoded);
        let content = encoded.and_then(|encoded| BASE64_STANDARD.decode(encoded).ok());
        let content = content.as_deref().unwrap_or(file.url.as_bytes());
        let written = (self.workdir)()
            .map_err(|error| error.message().into_owned())
            .and_then(|directory| self.named(directory, "bin").write(content).map_err(|error| error.to_string()));
        let place = match written {
            Ok(path) => format!("It is in the file {}.", path.display()),
            Err(reason) => format!("It could not be written to a file and is lost: {reason}"),
        };
        format!("{} is left out, because the files of the result are too large. {place}", file.label())
    }

    /// Returns a text that shows a quarter of the limit.
    fn long_text(&self, extension: &'static str) -> LongText {
        match (self.workdir)() {
            Ok(directory) => LongText::new(self.size.bytes / 4, self.named(directory, extension)),
            Err(error) => LongText::without_file(self.size.bytes / 4, error.message()),
        }
    }

    fn named(&self, directory: &Path, extension: &'static str) -> NumberedFile {
        let name = ["result", self.tool, self.call.as_str()];
        NumberedFile::new(directory, name, extension).within((self.max_output)())
    }

    fn finish(&self, mut long: LongText) -> String {
        // The result that names the file will be on the disk too.
        long.sync();
        let file = long.file().map(|file| file.display().to_string());
        tracing::debug!(tool = self.tool, call = %self.call, file, "a result is too large, and was cut");
        long.to_string()
    }
}

/// Writes a text as it is. Other values cannot be written so.
struct Shown<'a, T>(&'a T);

impl<T: Serialize> fmt::Display for Shown<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.serialize(f)
    }
}
