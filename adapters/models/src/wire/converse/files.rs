//! Files of a request: images and documents.

use std::collections::HashSet;

use goondan_core::FilePart;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A file that Converse has a form for.
pub(super) struct File<'a> {
    format: &'static str,
    /// The content in Base64.
    data: &'a str,
    /// The name of a document. Images have none.
    name: Option<String>,
}

/// The names of the documents of a request so far: Converse refuses a request in which one occurs twice.
#[derive(Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// Returns a name in the alphabet of Converse that no document before has.
    fn unique(&mut self, name: Option<&str>) -> String {
        let legal = |c: char| if c.is_ascii_alphanumeric() || "-()[]".contains(c) { c } else { ' ' };
        let words: String = name.unwrap_or("document").chars().map(legal).take(100).collect();
        let words: Vec<_> = words.split_whitespace().collect();
        let name = if words.is_empty() { "document".to_owned() } else { words.join(" ") };
        let mut unique = name.clone();
        let mut number = 1;
        while !self.0.insert(unique.clone()) {
            number += 1;
            unique = format!("{name} {number}");
        }
        unique
    }
}

impl<'a> File<'a> {
    /// Returns a file, unless Converse cannot read it: it takes no links.
    pub(super) fn new(file: &'a FilePart, names: &mut Names) -> Option<Self> {
        let (format, is_document) = match &*file.media_type {
            "image/jpeg" => ("jpeg", false),
            "image/png" => ("png", false),
            "image/gif" => ("gif", false),
            "image/webp" => ("webp", false),
            "application/pdf" => ("pdf", true),
            "text/csv" => ("csv", true),
            "text/html" => ("html", true),
            "text/markdown" => ("md", true),
            "text/plain" => ("txt", true),
            "application/msword" => ("doc", true),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => ("docx", true),
            "application/vnd.ms-excel" => ("xls", true),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => ("xlsx", true),
            _ => return None,
        };
        let data = file.url.strip_prefix("data:")?.split_once(";base64,")?.1;
        Some(Self { format, data, name: is_document.then(|| names.unique(file.name.as_deref())) })
    }

    /// Returns the name of a document.
    pub(super) fn document(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Content<'a> {
            format: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<&'a str>,
            source: Source<'a>,
        }

        #[derive(Serialize)]
        struct Source<'a> {
            bytes: &'a str,
        }

        let mut block = serializer.serialize_map(Some(1))?;
        let kind = if self.name.is_some() { "document" } else { "image" };
        let (name, source) = (self.name.as_deref(), Source { bytes: self.data });
        block.serialize_entry(kind, &Content { format: self.format, name, source })?;
        block.end()
    }
}
