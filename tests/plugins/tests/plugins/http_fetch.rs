//! F-BASE: the tools that make HTTP requests, with servers on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use goondan::testing::Chat;
use goondan::tool::Effect;
use goondan::{Value, json};
use goondan_covers::both_linkages;

use crate::call::{call, effects, open, refused};
use crate::linkage::WithPlugin;

/// A server, which records the requests that it gets.
struct Server {
    host: String,
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server at an address of this machine. `answer` makes the response to a request.
    fn start(host: &str, answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let record = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read_request(&stream);
                record.lock().unwrap().push(request.clone());
                answer(&request, &mut stream);
            }
        });
        Self { host: host.to_owned(), port, requests }
    }

    /// Starts a server that answers every request with this head and this body.
    fn answering(host: &str, head: String, body: &'static [u8]) -> Self {
        Self::start(host, move |_, stream| respond(stream, &head, body))
    }

    fn url(&self, path: &str) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("http://{host}:{}{path}", self.port)
    }

    /// Returns the requests so far.
    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    while reader.read_line(&mut request).unwrap() > 2 {}
    let length =
        |line: &str| line.to_lowercase().strip_prefix("content-length:").map(|rest| rest.trim().parse().unwrap());
    let mut body = vec![0; request.lines().find_map(length).unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    request + &String::from_utf8(body).unwrap()
}

/// Writes a response. A client that has read enough may be gone.
fn respond(stream: &mut TcpStream, head: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

async fn chat(allowed: &[&str]) -> Chat {
    open("http-fetch", json!({ "allowHosts": allowed })).await
}

async fn get(chat: &mut Chat, url: &str) -> Value {
    call(chat, "http-fetch__get", json!({ "url": url })).await
}

/// Fetches a URL that cannot be, and returns the code and the message.
async fn refused_get(chat: &mut Chat, url: &str) -> (String, String) {
    refused(chat, "http-fetch__get", json!({ "url": url })).await
}

#[both_linkages]
async fn a_request_has_what_the_model_says_and_the_answer_is_a_result() {
    let server = Server::answering("127.0.0.1", "404 Not Found\r\nx-a: 1\r\nx-a: 2".to_owned(), "{\"ä\":1}".as_bytes());
    let mut chat = chat(&["127.0.0.1"]).await;
    let expected = [("get", Effect::Read), ("post", Effect::Once), ("request", Effect::Once)];
    assert_eq!(effects(&chat).await, expected.map(|(name, effect)| (format!("http-fetch__{name}"), effect)));
    let mut answer = get(&mut chat, &server.url("/a?b=c")).await;
    assert!(answer.as_object_mut().unwrap().remove("durationMs").unwrap().is_u64());
    let expected = json!({
        "url": server.url("/a?b=c"), "method": "GET", "status": 404, "statusText": "Not Found",
        "headers": { "content-length": "8", "x-a": "1, 2" },
        "body": "{\"ä\":1}", "truncated": false,
    });
    assert_eq!(answer, expected);
    let arguments = json!({ "url": server.url("/post"), "body": { "a": 1 }, "headers": { "X-Key": "key" } });
    assert_eq!(call(&mut chat, "http-fetch__post", arguments).await["method"], "POST");
    let arguments = json!({ "method": "PUT", "url": server.url("/put"), "bodyString": "text" });
    assert_eq!(call(&mut chat, "http-fetch__request", arguments).await["method"], "PUT");
    let [got, posted, put] = &server.requests()[..] else { panic!() };
    assert!(got.starts_with("GET /a?b=c HTTP/1.1\r\n") && got.contains("user-agent: goondan/"), "{got}");
    assert!(posted.starts_with("POST /post ") && posted.ends_with("\r\n\r\n{\"a\":1}"), "{posted}");
    assert!(posted.contains("x-key: key\r\n") && posted.contains("content-type: application/json\r\n"), "{posted}");
    assert!(put.starts_with("PUT /put ") && put.ends_with("\r\n\r\ntext"), "{put}");
}

#[both_linkages]
async fn what_cannot_be_sent_is_refused() {
    let mut chat = chat(&["127.0.0.1"]).await;
    for url in
        ["file:///etc/passwd", "ftp://example.com/", "gopher://example.com/", "data:,x", "example.com", "http://"]
    {
        let (code, message) = refused_get(&mut chat, url).await;
        assert_eq!(code, "E_HTTP_REQUEST", "{message}");
    }
    for name in [
        "Host",
        "Content-Length",
        "transfer-encoding",
        "Connection",
        "Accept-Encoding",
        "proxy-authorization",
        "a b",
        "",
    ] {
        let arguments = json!({ "url": "http://127.0.0.1:9/", "headers": { name: "x" } });
        let (code, message) = refused(&mut chat, "http-fetch__get", arguments).await;
        assert_eq!(code, "E_HTTP_REQUEST");
        assert!(message.contains(&format!("the header `{name}` cannot be sent")), "{message}");
    }
    let arguments = json!({ "url": "http://127.0.0.1:9/", "headers": { "a": "b\r\nc: d" } });
    assert_eq!(refused(&mut chat, "http-fetch__get", arguments).await.0, "E_HTTP_REQUEST");
    let both = json!({ "url": "http://127.0.0.1:9/", "body": {}, "bodyString": "" });
    assert_eq!(refused(&mut chat, "http-fetch__post", both).await.0, "E_HTTP_REQUEST");
}

#[both_linkages]
async fn no_encoding_is_asked_for_and_one_is_refused() {
    let mut chat = chat(&["127.0.0.1"]).await;
    for encoding in ["gzip", "br", "deflate, gzip", "x-unknown"] {
        let head = format!("200 OK\r\ncontent-encoding: {encoding}");
        let server = Server::answering("127.0.0.1", head, b"\x1f\x8b");
        let (code, message) = refused_get(&mut chat, &server.url("/")).await;
        assert_eq!(code, "E_HTTP_ENCODING", "{message}");
        assert!(message.contains(&format!("the encoding `{encoding}`")), "{message}");
        assert!(server.requests()[0].contains("accept-encoding: identity\r\n"), "{:?}", server.requests());
    }
    let server = Server::answering("127.0.0.1", "200 OK\r\ncontent-encoding: Identity".to_owned(), b"text");
    assert_eq!(get(&mut chat, &server.url("/")).await["body"], "text");
}

#[both_linkages]
async fn headers_about_the_connection_are_not_for_the_model() {
    let mut chat = chat(&["127.0.0.1"]).await;
    let hop = "keep-alive: timeout=5\r\nproxy-authenticate: Basic\r\nproxy-status: x\r\nte: x\r\ntrailer: x\r\nupgrade: h2c\r\n";
    let head = format!("200 OK\r\n{hop}connection: X-Hop, close\r\nx-hop: 1\r\nx-kept: 1");
    let server = Server::answering("127.0.0.1", head, b"text");
    let answer = get(&mut chat, &server.url("/")).await;
    assert_eq!(answer["headers"], json!({ "content-length": "4", "x-kept": "1" }));
}

#[both_linkages]
async fn an_address_that_is_not_public_is_refused_in_every_form() {
    let server = Server::answering("127.0.0.1", "200 OK".to_owned(), b"the secret");
    let mut chat = chat(&[]).await;
    let port = server.port;
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "2130706433",
        "0",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "user:key@127.0.0.1",
        "example.com@127.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:1::1]",
        "[fe80::1]",
        "[fd00::1]",
        "[ff02::1]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
    ] {
        let (code, message) = refused_get(&mut chat, &format!("http://{host}:{port}/")).await;
        // A resolver may not know a name with a dot at its end.
        let unknown = host == "localhost." && code == "E_HTTP_FAILED";
        assert!(code == "E_HTTP_ADDRESS" || unknown, "{host}: {code} {message}");
    }
    assert_eq!(server.requests(), [""; 0]);
}

#[both_linkages]
async fn a_redirect_to_an_address_that_is_not_public_is_refused() {
    let inside = Server::answering("127.0.0.2", "200 OK".to_owned(), b"the secret");
    let mut chat = chat(&["127.0.0.1"]).await;
    for status in ["301 a", "302 a", "303 a", "307 a", "308 a"] {
        for host in ["127.0.0.2", "localhost", "[::1]", "0x7f000002", "169.254.169.254"] {
            let head = format!("{status}\r\nlocation: http://{host}:{}/", inside.port);
            let outside = Server::answering("127.0.0.1", head, b"");
            let (code, message) = refused_get(&mut chat, &outside.url("/")).await;
            assert_eq!(code, "E_HTTP_ADDRESS", "{message}");
            assert_eq!(outside.requests().len(), 1);
        }
    }
    assert_eq!(inside.requests(), [""; 0]);
    for location in ["file:///etc/passwd", "ftp://127.0.0.1/"] {
        let outside = Server::answering("127.0.0.1", format!("302 a\r\nlocation: {location}"), b"");
        assert_eq!(refused_get(&mut chat, &outside.url("/")).await.0, "E_HTTP_REQUEST");
    }
}

#[both_linkages]
async fn redirects_are_followed_with_the_method_and_the_headers_that_may_go_on() {
    let end = Server::answering("127.0.0.2", "200 OK".to_owned(), b"end");
    let mut chat = chat(&["127.0.0.1", "127.0.0.2"]).await;
    let to_end = end.url("/end");
    let start = Server::start("127.0.0.1", move |request, stream| {
        let status = request.split(['/', ' ']).nth(2).unwrap();
        let location = if request.contains(" /303 ") { "/307" } else { &to_end };
        respond(stream, &format!("{status} a\r\nlocation: {location}"), b"");
    });
    let arguments =
        json!({ "url": start.url("/303"), "body": { "a": 1 }, "headers": { "Authorization": "key", "X-Key": "key" } });
    let answer = call(&mut chat, "http-fetch__post", arguments.clone()).await;
    assert_eq!((&answer["url"], &answer["body"]), (&json!(end.url("/end")), &json!("end")));
    let [first, second] = &start.requests()[..] else { panic!() };
    assert!(first.starts_with("POST /303 ") && first.ends_with("{\"a\":1}"), "{first}");
    assert!(second.starts_with("GET /307 ") && second.contains("x-key: key"), "the same site: {second}");
    let arguments =
        json!({ "url": start.url("/308"), "body": { "a": 1 }, "headers": { "Authorization": "key", "X-Key": "key" } });
    call(&mut chat, "http-fetch__post", arguments).await;
    let [got, posted] = &end.requests()[..] else { panic!() };
    assert!(got.starts_with("GET /end ") && posted.starts_with("POST /end "), "{got}{posted}");
    assert!(posted.ends_with("{\"a\":1}") && posted.contains("content-type: application/json"), "{posted}");
    assert!(!format!("{got}{posted}").contains("key"), "another site: {got}{posted}");

    let circle = Server::answering("127.0.0.1", "302 a\r\nlocation: /".to_owned(), b"");
    let (code, message) = refused_get(&mut chat, &circle.url("/")).await;
    assert_eq!((code.as_str(), message.contains("more than 10 redirects")), ("E_HTTP_FAILED", true), "{message}");
    assert_eq!(circle.requests().len(), 11);
}

#[both_linkages]
async fn a_body_is_cut_or_in_a_file() {
    let mut chat = chat(&["127.0.0.1"]).await;
    let endless = Server::start("127.0.0.1", |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all("ä".repeat(1000).as_bytes()).is_ok() {}
    });
    let answer = get(&mut chat, &endless.url("/")).await;
    assert_eq!((answer["body"].as_str().unwrap().len(), &answer["truncated"]), (500_000, &json!(true)));
    let arguments = json!({ "url": endless.url("/"), "maxBytes": 5 });
    assert_eq!(call(&mut chat, "http-fetch__get", arguments).await["body"], "ää");
    let image = Server::answering("127.0.0.1", "200 OK\r\ncontent-type: image/png".to_owned(), b"\x89PNG\xff");
    let answer = get(&mut chat, &image.url("/")).await;
    assert_eq!(answer.get("body"), None);
    assert_eq!(std::fs::read(answer["file"].as_str().unwrap()).unwrap(), b"\x89PNG\xff");
    let latin =
        Server::answering("127.0.0.1", "200 OK\r\ncontent-type: Text/HTML; charset=latin1".to_owned(), b"caf\xe9");
    assert_eq!(get(&mut chat, &latin.url("/")).await["body"], "caf\u{fffd}");
}

#[both_linkages]
async fn a_server_that_is_silent_or_gone_is_an_error() {
    let mut chat = chat(&["127.0.0.1", "localhost"]).await;
    let (code, message) = {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://127.0.0.1:{}/", silent.local_addr().unwrap().port());
        refused(&mut chat, "http-fetch__get", json!({ "url": url, "timeoutMs": 50 })).await
    };
    assert_eq!((code.as_str(), message.contains("within 50 ms")), ("E_HTTP_TIMEOUT", true), "{message}");
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port())
    };
    assert_eq!(refused_get(&mut chat, &gone).await.0, "E_HTTP_FAILED");
    let short = Server::start("127.0.0.1", |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc");
    });
    assert_eq!(refused_get(&mut chat, &short.url("/")).await.0, "E_HTTP_FAILED");
    let (code, _) = refused_get(&mut chat, "http://no-such-host.invalid/").await;
    assert_eq!(code, "E_HTTP_FAILED");
}

#[both_linkages]
async fn a_host_is_allowed_by_its_name_or_its_address() {
    let server = Server::answering("127.0.0.1", "200 OK".to_owned(), b"here");
    for (allowed, host) in [("localhost", "localhost"), ("LocalHost", "localhost"), ("0x7f.1", "127.0.0.1")] {
        let mut chat = chat(&[allowed]).await;
        assert_eq!(get(&mut chat, &format!("http://{host}:{}/", server.port)).await["body"], "here");
    }
    for wrong in ["http://localhost", "localhost:80", "local/host", "", "*.local host"] {
        let config = json!({ "allowHosts": [wrong] });
        let error = Chat::builder().agent(|agent| agent.plugin("http-fetch", "http-fetch", config)).start().await;
        assert_eq!(error.unwrap_err().code().as_str(), "E_EXT_CONFIG", "{wrong}");
    }
}

/// Runs another test of this program with a proxy in the environment: it passes, although the proxy is not there.
#[test]
fn a_proxy_of_the_environment_is_not_used() {
    let mut test = Command::new(std::env::current_exe().unwrap());
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        test.env(name, "http://127.0.0.1:9");
    }
    test.env_remove("no_proxy").env_remove("NO_PROXY");
    let output =
        test.args(["--exact", "http_fetch::a_host_is_allowed_by_its_name_or_its_address::linked"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
