//! A model whose provider fails once: the terminal shows that it is asked again.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::screen::Screen;
use crate::support::Fixture;

/// Reads a request, and answers it with a response that ends with the connection.
fn answer(connection: TcpStream, status: &str, head: &str, body: &str) {
    let mut reader = BufReader::new(&connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    write!(&connection, "HTTP/1.1 {status}\r\nconnection: close\r\n{head}\r\n\r\n{body}").unwrap();
}

#[test]
fn that_a_model_is_asked_again_is_shown_with_the_wait_and_the_cause() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let busy = r#"{"error":{"message":"Overloaded"}}"#;
        answer(listener.accept().unwrap().0, "529 Overloaded", "retry-after-ms: 1", busy);
        let events = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"fine\"}}]}\n\n\
                      data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        answer(listener.accept().unwrap().0, "200 OK", "content-type: text/event-stream", events);
    });
    let fixture = Fixture::new();
    let bundle = fs::read_to_string(fixture.manifest()).unwrap();
    let spec = format!("spec: {{ provider: openai-compatible, model: m, baseUrl: '{url}' }}");
    let scripted = "spec: { provider: scripted, script: ./script.yaml, record: ./requests.jsonl }";
    fs::write(fixture.manifest(), bundle.replace(scripted, &spec)).unwrap();
    let screen = Screen::start(&fixture, &[], &[]);
    screen.shows(">");
    screen.send("hello\r");
    screen.shows("> hello\nasking again in N s (status 529: Overloaded)\nfine\n>");
    screen.send("/quit\r");
    assert_eq!(screen.end().0.code(), Some(0));
    server.join().unwrap();
}
