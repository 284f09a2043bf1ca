//! The server over HTTP: one request at a time, and one connection for each.
#![allow(clippy::unwrap_used, reason = "a test server that fails should say where")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::{SUBSCRIPTION, Server};

/// Connections that stay open.
#[derive(Default)]
struct Open {
    /// Those of requests that are not answered.
    unanswered: Vec<TcpStream>,
    subscribed: Vec<TcpStream>,
}

/// Answers requests until the process is killed.
pub(crate) fn serve(mut server: Server) -> ! {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    server.log(&format!("port {}", listener.local_addr().unwrap().port()));
    let mut open = Open::default();
    loop {
        let (stream, _) = listener.accept().unwrap();
        // The client may have closed the connection.
        let _ = answer(&mut server, &mut open, stream);
    }
}

/// Reads a request, and answers it with an event for each message.
fn answer(server: &mut Server, open: &mut Open, stream: TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let find = |line: &String| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        };
        lines.iter().find_map(find)
    };
    if let Some(value) = header("x-odd") {
        server.log(&format!("header {value}"));
    }
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body)?;
    let mut stream = reader.into_inner();
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        // There is no stream of events without a request.
        return respond(&mut stream, "405 Method Not Allowed", "");
    };
    let answers = server.receive(&message);
    if message["method"] == "subscriptions/listen" && !answers.is_empty() {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all((head.to_owned() + &events(&answers)).as_bytes())?;
        open.subscribed.push(stream);
        return Ok(());
    }
    let is_announcement = |answer: &Value| !answer["params"]["_meta"][SUBSCRIPTION].is_null();
    let (announcements, answers): (Vec<_>, Vec<_>) = answers.into_iter().partition(is_announcement);
    // Not to those that the client has closed.
    open.subscribed.retain_mut(|stream| stream.write_all(events(&announcements).as_bytes()).is_ok());
    if answers.is_empty() && !message["id"].is_null() {
        open.unanswered.push(stream);
        return Ok(());
    }
    if answers.is_empty() {
        return respond(&mut stream, "202 Accepted", "");
    }
    match (&answers[..], server.has("json")) {
        ([answer], true) => respond(&mut stream, "200 OK\r\ncontent-type: application/json", &answer.to_string()),
        _ => respond(&mut stream, "200 OK\r\ncontent-type: text/event-stream", &events(&answers)),
    }
}

fn events(messages: &[Value]) -> String {
    messages.iter().map(|message| format!("data: {message}\n\n")).collect()
}

fn respond(stream: &mut TcpStream, head: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
