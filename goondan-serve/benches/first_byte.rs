//! The time to the first byte and to the end of a scripted turn, beside an axum handler that streams
//! the same number of events and does nothing else; then both again while a thousand streams are open. Prints
//! microseconds, and the ratio. At last, a thousand read nothing of a long answer.
#![expect(clippy::expect_used, reason = "a benchmark fails by panicking")]

use std::convert::Infallible;
use std::future::pending;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::sse::{Event, Sse};
use axum::routing::post;
use futures_util::stream;
use goondan::Agent;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan_serve::{Service, listen};
use reqwest::Client;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

const TURNS: usize = 2_000;

/// Returns the medians of the first byte and of the whole, in microseconds, for each address. They are asked in turn,
/// so that whatever else the machine does is the same for all.
async fn measure<const N: usize>(client: &Client, urls: [&str; N]) -> [(u128, u128); N] {
    let mut times = urls.map(|_| (Vec::new(), Vec::new()));
    for turn in 0..TURNS {
        for ((first, whole), url) in times.iter_mut().zip(urls) {
            let url = url.replace("KEY", &format!("key-{}", turn % 500));
            let begun = Instant::now();
            let mut response = client.post(&url).body(r#"{"input":"hello"}"#).send().await.expect("an answer");
            _ = response.chunk().await;
            first.push(begun.elapsed().as_micros());
            while let Ok(Some(_)) = response.chunk().await {}
            whole.push(begun.elapsed().as_micros());
        }
    }
    times.map(|(mut first, mut whole)| {
        first.sort_unstable();
        whole.sort_unstable();
        (first[TURNS / 2], whole[TURNS / 2])
    })
}

/// Serves `router`, as `goondan serve` does, on threads of its own: a client is another program.
fn serve(server: &Runtime, router: Router) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    server.spawn(async { listen(TcpListener::from_std(listener).expect("a listener"), router, pending()).await });
    url
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    _ = rustls::crypto::ring::default_provider().install_default();
    // As in a bundle, whose conversations stay open for a while.
    let agent = Agent::builder("assistant").idle_after(Duration::from_secs(60));
    let agent = agent.model(ScriptedModel::new([ScriptItem::say("hi").repeat()])).build();
    let service = Service::new(agent.expect("an agent"));
    let server = Runtime::new().expect("a runtime");
    let served = serve(&server, service.router());
    let events =
        || stream::iter((0..8).map(|number| Ok::<_, Infallible>(Event::default().data("x".repeat(200 + number)))));
    let bare = serve(&server, Router::new().route("/bare", post(move |_: String| async move { Sse::new(events()) })));
    let client = Client::new();
    let turns = format!("{served}/v1/agents/assistant/instances/KEY/turns");
    let both = async |when: &str| {
        let [plain, turn] = measure(&client, [&format!("{bare}/bare"), &turns]).await;
        let ratio = |a: u128, b: u128| format!("{}.{:02}", a / b, a * 100 / b % 100);
        println!(
            "{when}: bare {plain:?} us, a turn {turn:?} us, {} and {} times",
            ratio(turn.0, plain.0),
            ratio(turn.1, plain.1)
        );
    };
    both("alone").await;
    let before = resident();
    let mut open = Vec::new();
    for stream in 0..1_000 {
        let watched = client.get(format!("{served}/v1/agents/assistant/instances/watched-{stream}/events"));
        open.push(watched.send().await.expect("a stream"));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    println!("1,000 open streams, with their clients in this process: {} kB", resident() - before);
    both("with 1,000 open streams").await;
    drop(open);
    for (answer, what) in [
        (ScriptItem::say("word ".repeat(20_000)).pieces(NonZeroU32::MIN.saturating_add(19_999)), "20,000 pieces"),
        (ScriptItem::say("x".repeat(4 << 20)), "one piece of 4 MB"),
    ] {
        let (bytes, held) = unread(&server, &client, answer).await;
        println!("1,000 who read nothing of an answer in {what}, a stream of {bytes} bytes: {held} kB");
    }
    server.shutdown_background();
}

/// Lets a thousand watch a turn and read nothing. Returns the bytes of its stream, and the memory that this takes.
async fn unread(server: &Runtime, client: &Client, answer: ScriptItem) -> (usize, u64) {
    let agent = Agent::builder("assistant").model(ScriptedModel::new([answer])).build().expect("an agent");
    let url = serve(server, Service::new(agent).router());
    let turn = client.post(format!("{url}/v1/agents/assistant/instances/one/turns")).body(r#"{"input":"hello"}"#);
    let turn = turn.send().await.expect("an answer");
    let place = turn.headers()["location"].to_str().expect("a path").to_owned();
    let bytes = turn.bytes().await.expect("an answer").len();
    let before = resident();
    let mut watching = Vec::new();
    for _ in 0..1_000 {
        let mut connection = TcpStream::connect(url.trim_start_matches("http://")).await.expect("a connection");
        let request = format!("GET {place}/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
        connection.write_all(request.as_bytes()).await.expect("a request");
        watching.push(connection);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    (bytes, resident().saturating_sub(before))
}
