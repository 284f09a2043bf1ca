//! The server over HTTP: one request at a time, and one connection for each.
#![allow(clippy::unwrap_used, reason = "a test server that fails should say where")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::Server;

/// Answers requests until the process is killed.
pub(crate) fn serve(mut server: Server) -> ! {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    server.log(&format!("port {}", listener.local_addr().unwrap().port()));
    // Connections of requests that are not answered stay open.
    let mut unanswered = Vec::new();
    loop {
        let (stream, _) = listener.accept().unwrap();
        unanswered.extend(answer(&mut server, stream));
    }
}

/// Reads a request, and answers it with an event for each message. Returns the stream if there is no answer.
fn answer(server: &mut Server, stream: TcpStream) -> Option<TcpStream> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
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
    reader.read_exact(&mut body).ok()?;
    let mut stream = reader.into_inner();
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        // There is no stream of events without a request.
        return respond(&mut stream, "405 Method Not Allowed", "");
    };
    let answers = server.receive(&message);
    if answers.is_empty() && !message["id"].is_null() {
        return Some(stream);
    }
    if answers.is_empty() {
        return respond(&mut stream, "202 Accepted", "");
    }
    let events: String = answers.iter().map(|answer| format!("data: {answer}\n\n")).collect();
    respond(&mut stream, "200 OK\r\ncontent-type: text/event-stream", &events)
}

fn respond(stream: &mut TcpStream, head: &str, body: &str) -> Option<TcpStream> {
    let length = body.len();
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    // The client may have closed the connection.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    None
}
