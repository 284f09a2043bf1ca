//! Files that go with an input.

use std::fs;
use std::path::Path;

use goondan::conversation::{FilePart, Part, TextPart};
use goondan::event::AgentEvent;
use goondan::{Error, ErrorCode, Result};

/// The media types of files that models take, by extension.
const MEDIA_TYPES: [(&str, &str); 18] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("pdf", "application/pdf"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("html", "text/html"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("md", "text/markdown"),
    ("json", "application/json"),
    ("xml", "application/xml"),
];

/// Returns the event of an input with files.
pub(crate) fn event(text: &str, files: Vec<FilePart>) -> AgentEvent {
    if files.is_empty() {
        return text.into();
    }
    let text = Some(TextPart::new(text).into()).filter(|_| !text.trim().is_empty());
    AgentEvent::content(text.into_iter().chain(files.into_iter().map(Part::from)))
}

/// Reads the file at `path`. Its extension gives the type; other files are plain text if they are UTF-8.
pub(crate) fn read(path: &Path) -> Result<FilePart> {
    let failed = |what: String| Error::new(ErrorCode::INPUT_FILE, what).suggest("give the path of a readable file");
    let found = fs::metadata(path)
        .map_err(|error| failed(format!("cannot read the file {}", path.display())).caused_by(error))?;
    if !found.is_file() {
        return Err(failed(format!("{} is no regular file", path.display())));
    }
    if found.len() > AgentEvent::MAX_FILE as u64 {
        let limit = AgentEvent::MAX_FILE >> 20;
        return Err(failed(format!("the file {} has more than {limit} MB", path.display())).suggest("make it smaller"));
    }
    let content =
        fs::read(path).map_err(|error| failed(format!("cannot read the file {}", path.display())).caused_by(error))?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase();
    let known = MEDIA_TYPES.iter().find(|(known, _)| *known == extension).map(|(_, media_type)| *media_type);
    let is_text = || str::from_utf8(&content).is_ok();
    let media_type = known.unwrap_or_else(|| if is_text() { "text/plain" } else { "application/octet-stream" });
    let mut file = FilePart::from_bytes(media_type, &content);
    file.name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    // Before the conversation is opened, and when the file is named.
    file.check()?;
    Ok(file)
}
