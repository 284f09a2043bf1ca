//! A provider on loopback with the interface of Anthropic, which refuses files as real ones do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// The statuses with which a provider has answered.
#[derive(Clone, Default)]
struct Answered(Arc<Mutex<Vec<u16>>>);

/// A provider. It asks for the tool `files__<name>` after an input `show <name>`, and otherwise answers `fine`.
pub(crate) struct Provider {
    url: String,
    answered: Answered,
}

impl Provider {
    /// Starts one, which ends with the process.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answered = Answered::default();
        let told = answered.clone();
        thread::spawn(move || listener.incoming().for_each(|stream| told.answer(stream.unwrap())));
        Self { url, answered }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the statuses of its answers since the last call.
    pub(crate) fn statuses(&self) -> Vec<u16> {
        std::mem::take(&mut self.answered.0.lock().unwrap())
    }
}

impl Answered {
    /// Reads a request, and answers it.
    fn answer(&self, stream: TcpStream) {
        let mut reader = BufReader::new(&stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap() > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let problem = messages.iter().enumerate().find_map(|(index, message)| refusal(message, index));
        let (status, kind, text) = match problem {
            Some(message) => {
                let error = json!({ "type": "invalid_request_error", "message": message });
                (400, "application/json", json!({ "type": "error", "error": error }).to_string())
            }
            None => (200, "text/event-stream", events(messages.last().unwrap())),
        };
        self.0.lock().unwrap().push(status);
        let head = format!("HTTP/1.1 {status} OK\r\ncontent-type: {kind}\r\ncontent-length: {}", text.len());
        (&stream).write_all(format!("{head}\r\nconnection: close\r\n\r\n{text}").as_bytes()).unwrap();
    }
}

/// Returns what is wrong with the files in a part of a request, in the words of the provider.
fn refusal(value: &Value, index: usize) -> Option<String> {
    if let Some(source) = value.get("source").filter(|source| source["type"] == "base64") {
        let (media_type, data) = (source["media_type"].as_str()?, source["data"].as_str()?);
        return problem(media_type, data).map(|problem| format!("messages.{index}.content: {problem}"));
    }
    match value {
        Value::Array(items) => items.iter().find_map(|item| refusal(item, index)),
        Value::Object(members) => members.values().find_map(|member| refusal(member, index)),
        _ => None,
    }
}

fn problem(media_type: &str, data: &str) -> Option<String> {
    let known = [
        ("image/png", &b"\x89PNG\r\n\x1a\n"[..], &b"IEND\xae\x42\x60\x82"[..]),
        ("image/jpeg", b"\xff\xd8\xff", b"\xff\xd9"),
        ("image/gif", b"GIF89a", b";"),
        ("image/webp", b"RIFF", b""),
        ("application/pdf", b"%PDF-", b"%%EOF"),
    ];
    let Some((_, start, end)) = known.iter().find(|(known, ..)| *known == media_type) else {
        return Some(format!("media_type: Input should be 'image/jpeg', 'image/png', …, not '{media_type}'"));
    };
    let Ok(content) = BASE64_STANDARD.decode(data) else { return Some("Invalid base64 data".to_owned()) };
    match () {
        () if content.is_empty() => Some("image cannot be empty".to_owned()),
        () if !content.starts_with(start) => Some(format!("the image does not appear to be a {media_type} image")),
        () if !content.ends_with(end) => Some("Could not process image".to_owned()),
        () => None,
    }
}

/// Returns the stream of the answer to the newest message.
fn events(newest: &Value) -> String {
    let blocks = newest["content"].as_array().unwrap();
    let shown = blocks.iter().find_map(|block| block["text"].as_str()?.strip_prefix("show "));
    let block = match shown {
        Some(name) => {
            json!({ "type": "tool_use", "id": format!("call_{name}"), "name": format!("files__{name}"), "input": {} })
        }
        None => json!({ "type": "text", "text": "fine" }),
    };
    let reason = if shown.is_some() { "tool_use" } else { "end_turn" };
    [
        json!({ "type": "message_start", "message": {} }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason } }),
        json!({ "type": "message_stop" }),
    ]
    .map(|event| format!("data: {event}\n\n"))
    .concat()
}
