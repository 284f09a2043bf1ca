//! Checks that the content of a file is of its media type.
// REFUSED-01

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Whether content begins as a type does.
type Fits = fn(&[u8]) -> bool;

/// Types whose content begins in a certain way: their names, the usual one first, and whether content is of such a
/// type. Content of other types, unless it is text, can be anything.
const TYPES: [(&[&str], Fits); 19] = [
    (&["image/png"], |content| content.starts_with(b"\x89PNG\r\n\x1a\n")),
    (&["image/jpeg", "image/jpg", "image/pjpeg"], |content| content.starts_with(b"\xff\xd8\xff")),
    (&["image/gif"], |content| content.starts_with(b"GIF87a") || content.starts_with(b"GIF89a")),
    (&["image/webp"], |content| in_container(content, b"RIFF", &[b"WEBP"])),
    (&["image/bmp", "image/x-ms-bmp"], |content| content.starts_with(b"BM")),
    (&["image/tiff"], |content| content.starts_with(b"II*\0") || content.starts_with(b"MM\0*")),
    (&["image/avif", "image/avif-sequence"], |content| has_brand(content, &[b"avif", b"avis", b"mif1", b"msf1"])),
    (&["image/heic", "image/heif", "image/heic-sequence", "image/heif-sequence"], |content| {
        has_brand(content, &[b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"])
    }),
    // Readers accept other bytes before the header.
    (&["application/pdf"], |content| content[..content.len().min(1024)].windows(5).any(|bytes| bytes == b"%PDF-")),
    (&["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"], |content| {
        in_container(content, b"RIFF", &[b"WAVE"])
    }),
    (&["audio/mpeg", "audio/mp3"], |content| {
        content.starts_with(b"ID3")
            || matches!(content, [0xff, second, ..] if second & 0xe0 == 0xe0 && second & 0x06 != 0)
    }),
    (&["audio/aac"], |content| {
        content.starts_with(b"ADIF") || matches!(content, [0xff, second, ..] if second & 0xf6 == 0xf0)
    }),
    (&["audio/flac", "audio/x-flac"], |content| content.starts_with(b"fLaC") || content.starts_with(b"ID3")),
    (&["audio/ogg", "audio/opus", "video/ogg", "application/ogg"], |content| content.starts_with(b"OggS")),
    (&["audio/aiff", "audio/x-aiff"], |content| in_container(content, b"FORM", &[b"AIFF", b"AIFC"])),
    (
        &["video/mp4", "audio/mp4", "audio/m4a", "audio/x-m4a", "video/x-m4v", "video/3gpp", "video/quicktime"],
        |content| {
            let first = content.get(4..8).unwrap_or_default();
            [b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"].iter().any(|kind| first == *kind)
        },
    ),
    (&["video/webm", "audio/webm", "video/x-matroska"], |content| content.starts_with(b"\x1a\x45\xdf\xa3")),
    (&["video/x-msvideo", "video/avi"], |content| in_container(content, b"RIFF", &[b"AVI "])),
    (
        &[
            "application/zip",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        ],
        |content| content.starts_with(b"PK\x03\x04") || content.starts_with(b"PK\x05\x06"),
    ),
];

/// Types of text beside those of the kind `text` and those that end in `+json` and `+xml`.
const TEXTS: [&str; 6] = [
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/javascript",
    "application/x-ndjson",
];

/// Returns why a file with this type and URL cannot be sent to a model, if it cannot. The content behind a link is not
/// known.
pub(super) fn problem(media_type: &str, url: &str) -> Option<Cow<'static, str>> {
    let Some(kind) = essence(media_type) else { return Some("its media type cannot be read".into()) };
    if kind == "image/svg+xml" {
        return Some("models read no SVG images".into());
    }
    let Some(data) = url.strip_prefix("data:") else {
        return (!is_link(url)).then(|| "its address is not a URL".into());
    };
    let decoded = data.split_once(";base64,").and_then(|(kind, encoded)| Some((kind, decoded(encoded)?)));
    let Some((declared, content)) = decoded else { return Some("its content is not in base64".into()) };
    if essence(declared).as_ref() != Some(&kind) {
        return Some("its URL has another media type".into());
    }
    if content.is_empty() {
        return Some("it is empty".into());
    }
    if is_text(&kind) {
        return str::from_utf8(&content).err().map(|_| "its content is not UTF-8".into());
    }
    let (_, fits) = TYPES.iter().find(|(names, _)| names.contains(&&*kind))?;
    (!fits(&content)).then(|| match known_type(&content) {
        Some(other) => format!("its content is {other}").into(),
        None => "its content is not of that type".into(),
    })
}

/// Returns the type of the content of a URL, if it is known, and the content in base64.
pub(super) fn type_of(url: &str) -> Option<(&'static str, &str)> {
    let (_, encoded) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((known_type(&decoded(encoded)?)?, encoded))
}

fn decoded(content: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(content).ok()
}

fn known_type(content: &[u8]) -> Option<&'static str> {
    TYPES.iter().find(|(_, fits)| fits(content)).map(|(names, _)| names[0])
}

/// Returns the type and subtype, in lower case and without parameters, or `None` if a text is no media type.
pub(super) fn essence(media_type: &str) -> Option<String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let (kind, subtype) = essence.split_once('/')?;
    // A comma would end the type in a `data:` URL.
    let is_legal = media_type.len() <= 255 && !media_type.contains(|c: char| c == ',' || c.is_control());
    (is_legal && is_name(kind) && is_name(subtype)).then(|| essence.to_ascii_lowercase())
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/") || TEXTS.contains(&essence) || essence.ends_with("+json") || essence.ends_with("+xml")
}

/// Whether a URL has a scheme in lower case, as those who read URLs expect it.
fn is_link(url: &str) -> bool {
    let is_of_scheme = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    url.split_once(':')
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && scheme.bytes().all(is_of_scheme))
}

/// Whether content is a container that has one of these forms.
fn in_container(content: &[u8], container: &[u8], forms: &[&[u8; 4]]) -> bool {
    content.starts_with(container) && content.get(8..12).is_some_and(|form| forms.iter().any(|known| form == *known))
}

/// Whether content is in boxes, as MP4 is, of one of these brands.
fn has_brand(content: &[u8], brands: &[&[u8; 4]]) -> bool {
    content.get(4..8) == Some(b"ftyp")
        && content.get(8..12).is_some_and(|brand| brands.iter().any(|known| brand == *known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(media_type: &str, content: &[u8]) -> Option<Cow<'static, str>> {
        problem(media_type, &format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(content)))
    }

    #[test]
    fn content_is_of_its_type() {
        let good: [(&str, &[u8]); 24] = [
            ("image/png", b"\x89PNG\r\n\x1a\n"),
            ("IMAGE/PNG", b"\x89PNG\r\n\x1a\n"),
            ("image/jpeg", b"\xff\xd8\xff\xe0"),
            ("image/jpg", b"\xff\xd8\xff\xe1"),
            ("image/gif", b"GIF89a"),
            ("image/webp", b"RIFF\0\0\0\0WEBPVP8 "),
            ("image/bmp", b"BM"),
            ("image/tiff", b"MM\0*"),
            ("image/heic", b"\0\0\0\x18ftypheic"),
            ("image/avif", b"\0\0\0\x18ftypavif"),
            ("application/pdf", b"\xef\xbb\xbf%PDF-1.7"),
            ("audio/wav", b"RIFF\0\0\0\0WAVE"),
            ("audio/mpeg", b"ID3\x04"),
            ("audio/mp3", b"\xff\xfb\x90"),
            ("audio/aac", b"\xff\xf1\x50"),
            ("audio/flac", b"fLaC"),
            ("audio/ogg", b"OggS"),
            ("video/mp4", b"\0\0\0\x20ftypisom"),
            ("video/quicktime", b"\0\0\0\x08wide"),
            ("video/webm", b"\x1a\x45\xdf\xa3"),
            ("text/plain; charset=utf-8", "für alle".as_bytes()),
            ("application/ld+json", b"{}"),
            // Unknown types.
            ("audio/L16;codec=pcm;rate=24000", &[0, 0, 0]),
            ("application/octet-stream", &[0xff]),
        ];
        for (media_type, content) in good {
            assert_eq!(of(media_type, content), None, "{media_type}");
        }
        for (names, _) in TYPES {
            assert_eq!(of(names[0], b"neither").as_deref(), Some("its content is not of that type"), "{names:?}");
            assert_eq!(of(names[0], b"").as_deref(), Some("it is empty"), "{names:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(of("image/png", b"\xff\xd8\xff").unwrap(), "its content is image/jpeg");
        assert_eq!(of("text/csv", b"f\xfcr").unwrap(), "its content is not UTF-8");
        assert_eq!(of("image/svg+xml", b"<svg/>").unwrap(), "models read no SVG images");
        let bad = [
            ("", "data:;base64,AAAA", "its media type cannot be read"),
            ("png", "data:png;base64,AAAA", "its media type cannot be read"),
            ("image/png,x/y", "https://example.org/", "its media type cannot be read"),
            ("image/png\n", "https://example.org/", "its media type cannot be read"),
            ("image/png", "data:text/html;base64,iVBORw0KGgo=", "its URL has another media type"),
            ("image/png", "data:image/png;base64,iVBORw0KGg", "its content is not in base64"),
            ("image/png", "data:image/png;base64,not base64", "its content is not in base64"),
            ("text/plain", "data:text/plain,hello", "its content is not in base64"),
            ("image/png", "DATA:image/png;base64,iVBORw0KGgo=", "its address is not a URL"),
            ("image/png", "", "its address is not a URL"),
            ("image/png", "a.png", "its address is not a URL"),
        ];
        for (media_type, url, expected) in bad {
            assert_eq!(problem(media_type, url).as_deref(), Some(expected), "{media_type} {url}");
        }
        assert_eq!(problem("image/png", "https://example.org/a"), None);
    }
}
