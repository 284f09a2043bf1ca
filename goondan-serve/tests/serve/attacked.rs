//! Clients that go away, read nothing, or come in thousands, and stores that are away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use goondan::agent::AgentBuilder;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::name::ExtensionName;
use goondan::prelude::*;
use goondan::store::{FileStore, InstanceId, MemoryStore, Opened, Store};
use goondan::{Agent, BoxFuture, ErrorCode, Value, json};
use goondan_covers::covers;
use goondan_serve::{Limits, Tokens};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::support::{PIECES, Served, events, hello, json_of, paced, text_of};

/// Returns the number of tries: `GOONDAN_RUNS`, or `sample` in the gate.
fn runs(sample: usize) -> usize {
    std::env::var("GOONDAN_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(sample)
}

/// The numbers of a seed, which differ enough.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// A model whose answer has many pieces, and that counts how often it is asked.
#[derive(Clone, Default)]
struct Long {
    pieces: usize,
    asked: Arc<AtomicUsize>,
}

impl Model for Long {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, deltas: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            for _ in 0..self.pieces {
                deltas.send(ModelDelta::Text { part: 0, text: "word " });
                tokio::task::yield_now().await;
            }
            Ok(ModelResponse::text("word ".repeat(self.pieces)))
        })
    }
}

fn long(pieces: usize) -> (AgentBuilder, Long) {
    let model = Long { pieces, ..Long::default() };
    (Agent::builder("assistant").model(model.clone()), model)
}

#[tokio::test]
#[covers("SERVE-01", "SERVE-02")]
async fn connections_that_are_cut_at_any_byte_lose_no_turn_and_double_none() {
    let runs = runs(300);
    let (agent, model) = long(8);
    let served = Served::new(agent).await;
    let address = served.url.strip_prefix("http://").unwrap();
    let mut random = Random(7);
    // The keys that were sent whole: their turns are accepted.
    let mut sent = BTreeMap::new();
    for run in 0..runs {
        let key = format!("key-{}", run % runs.div_ceil(5));
        let body = json!({ "input": key }).to_string();
        let request = format!(
            "POST /v1/agents/assistant/instances/{key}/turns HTTP/1.1\r\nhost: localhost\r\nidempotency-key: {key}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut connection = TcpStream::connect(address).await.unwrap();
        let cut = random.below(2 * request.len());
        let whole = cut >= request.len();
        connection.write_all(&request.as_bytes()[..cut.min(request.len())]).await.unwrap();
        if whole {
            let mut answer = vec![0; 1 + random.below(4_000)];
            connection.read_exact(&mut answer[..1]).await.unwrap();
            _ = tokio::time::timeout(Duration::from_millis(1), connection.read_exact(&mut answer[1..])).await;
            sent.insert(key, ());
        }
    }
    served.until_ended().await;
    assert_eq!(model.asked.load(Ordering::SeqCst), sent.len(), "one turn a key");
    for key in sent.keys() {
        let body = json!({ "input": key, "wait": "result" });
        let (status, end) = json_of(served.turn(key, &body, Some(key)).await).await;
        assert_eq!((status, &end["response"]), (200, &json!("word ".repeat(8))));
        let (_, messages) = served.get(&served.at(key, "/messages")).await;
        assert_eq!(messages.as_array().unwrap().len(), 2, "one input, one answer: {messages}");
    }
    assert_eq!(model.asked.load(Ordering::SeqCst), sent.len());
}

#[tokio::test]
#[covers("SERVE-01")]
async fn those_who_read_nothing_hold_up_no_turn_and_many_read_the_same() {
    let (agent, model) = paced();
    let served = Served::new(agent).await;
    let mut first = served.turn("ada", &hello(), None).await;
    let place = format!("{}{}", served.url, first.headers()["location"].to_str().unwrap());
    let mut watching = Vec::new();
    for _ in 0..runs(100) {
        watching.push(served.client.get(format!("{place}/events")).send().await.unwrap());
    }
    model.let_through(PIECES.len());
    // None of them has read yet.
    served.until_ended().await;
    let whole = events(&mut first, usize::MAX).await;
    assert_eq!(text_of(&whole), PIECES.concat());
    for mut response in watching {
        assert_eq!(events(&mut response, usize::MAX).await, whole);
    }
}

#[tokio::test]
#[covers("SERVE-01")]
async fn those_who_read_byte_by_byte_hold_up_no_turn_and_read_it_whole() {
    // More than the buffers of a connection hold.
    let (agent, _) = long(20_000);
    let served = Served::new(agent).await;
    let mut first = served.turn("ada", &hello(), None).await;
    let path = first.headers()["location"].to_str().unwrap().to_owned();
    let (ended, _) = tokio::sync::watch::channel(false);
    let watching = (0..runs(20)).map(|_| {
        let address = served.url.strip_prefix("http://").unwrap().parse().unwrap();
        let (path, mut ended) = (path.clone(), ended.subscribe());
        tokio::spawn(async move {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(4096).unwrap();
            let mut connection = socket.connect(address).await.unwrap();
            let request = format!("GET {path}/events HTTP/1.0\r\nhost: localhost\r\n\r\n");
            connection.write_all(request.as_bytes()).await.unwrap();
            let mut read = Vec::new();
            while read.len() < 1_000 {
                read.push(connection.read_u8().await.unwrap());
            }
            ended.wait_for(|ended| *ended).await.unwrap();
            connection.read_to_end(&mut read).await.unwrap();
            String::from_utf8(read).unwrap()
        })
    });
    let watching = watching.collect::<Vec<_>>();
    let whole = events(&mut first, usize::MAX).await;
    assert_eq!(text_of(&whole), "word ".repeat(20_000));
    served.until_ended().await;
    ended.send_replace(true);
    for watcher in watching {
        let read = watcher.await.unwrap();
        let data = read.lines().filter_map(|line| line.strip_prefix("data: "));
        assert!(data.eq(whole.iter().map(|event| event.data.as_str())));
    }
}

#[tokio::test]
#[covers("SERVE-01")]
async fn a_log_that_is_too_large_has_the_message_in_place_of_its_pieces() {
    let (agent, _) = long(2_000);
    let mut limits = Limits::default();
    limits.log_bytes = 20_000;
    let served = Served::with(agent, Arc::new(MemoryStore::new()), |service| service.limits(limits)).await;
    let mut response = served.turn("ada", &hello(), None).await;
    let place = format!("{}{}", served.url, response.headers()["location"].to_str().unwrap());
    let whole = events(&mut response, usize::MAX).await;
    served.until_ended().await;
    let watched = async |last: &str| {
        let request = served.client.get(format!("{place}/events")).header("last-event-id", last);
        events(&mut request.send().await.unwrap(), usize::MAX).await
    };
    let later = watched("").await;
    assert!(later.len() < 20, "{}", later.len());
    let is_answer = |event: &&crate::support::Sent| event.data.contains("\"role\":\"assistant\"");
    assert_eq!(later.iter().find(is_answer), whole.iter().find(is_answer));
    assert_eq!(later.last(), whole.last());
    // One who has read a part of the pieces reads the message, and what follows.
    let rest = watched(&whole[whole.len() / 2].id).await;
    assert_eq!(rest.iter().find(is_answer), whole.iter().find(is_answer));
    assert!(rest.iter().all(|event| whole.contains(event)));
}

/// Runs `test` with a clock that goes on as soon as nothing else is to be done.
fn with_a_fast_clock(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(test);
}

#[test]
#[covers("SERVE-01")]
fn a_stream_in_which_nothing_happens_has_comments_and_a_log_is_kept_for_five_minutes() {
    with_a_fast_clock(async {
        let (agent, model) = paced();
        let served = Served::new(agent).await;
        let mut response = served.turn("ada", &hello(), None).await;
        let place = format!("{}{}", served.url, response.headers()["location"].to_str().unwrap());
        let mut text = String::new();
        while text.matches("\n:").count() < 3 {
            text += std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap();
        }
        model.let_through(PIECES.len());
        served.until_ended().await;
        let watched = async || {
            let mut response = served.client.get(format!("{place}/events")).send().await.unwrap();
            events(&mut response, usize::MAX).await.len()
        };
        assert!(watched().await > 4);
        tokio::time::sleep(Duration::from_secs(301)).await;
        // Another turn sweeps.
        model.let_through(PIECES.len());
        json_of(served.turn("bob", &json!({ "input": "hi", "wait": "result" }), None).await).await;
        assert_eq!(watched().await, 1, "its end, which the store has");
    });
}

#[tokio::test]
#[covers("SERVE-01")]
async fn logs_that_have_ended_go_when_they_are_too_large_together() {
    let (agent, _) = long(50);
    let mut limits = Limits::default();
    limits.ended_bytes = 20_000;
    let served = Served::with(agent, Arc::new(MemoryStore::new()), |service| service.limits(limits)).await;
    let mut places = Vec::new();
    for key in 0..6 {
        let body = json!({ "input": "hi", "wait": "result" });
        let response = served.turn(&format!("key-{key}"), &body, None).await;
        places.push(format!("{}{}", served.url, response.headers()["location"].to_str().unwrap()));
    }
    let mut lengths = Vec::new();
    for place in &places {
        let mut response = served.client.get(format!("{place}/events")).send().await.unwrap();
        lengths.push(events(&mut response, usize::MAX).await.len());
    }
    assert!(lengths[0] == 1 && *lengths.last().unwrap() > 50, "the oldest go first: {lengths:?}");
}

#[test]
fn a_head_that_does_not_come_ends_its_connection() {
    with_a_fast_clock(async {
        let (agent, _) = paced();
        let service = goondan_serve::Service::new(agent.build().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(goondan_serve::listen(listener, service.router(), std::future::pending()));
        for bytes in ["", "POST /v1/agents HTTP/1.1\r\nhost: loc"] {
            let mut connection = TcpStream::connect(address).await.unwrap();
            connection.write_all(bytes.as_bytes()).await.unwrap();
            let begun = tokio::time::Instant::now();
            let mut answer = Vec::new();
            _ = connection.read_to_end(&mut answer).await;
            assert!(begun.elapsed() <= Duration::from_secs(11), "{:?}", begun.elapsed());
        }
        server.abort();
    });
}

#[tokio::test]
#[covers("SERVE-03")]
async fn a_principal_has_so_many_turns_and_guesses_find_none() {
    // Of `one` and `two`.
    let tokens = "ada: 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed\n\
                  bob: 3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3\n";
    let (agent, model) = paced();
    let mut limits = Limits::default();
    limits.per_principal = 1;
    let configure = |service: goondan_serve::Service| service.tokens(Tokens::parse(tokens).unwrap()).limits(limits);
    let served = Served::with(agent, Arc::new(MemoryStore::new()), configure).await;
    let turn = async |key: &str, token: &str| {
        let request = served.client.post(served.at(key, "/turns")).bearer_auth(token).body(hello().to_string());
        request.send().await.unwrap()
    };
    let mut one = turn("ada:1", "one").await;
    assert_eq!(turn("ada:2", "one").await.status(), 429);
    assert_eq!(turn("bob:1", "two").await.status(), 200, "those of others are not counted");
    model.let_through(2 * PIECES.len());
    events(&mut one, usize::MAX).await;
    served.until_ended().await;
    model.let_through(PIECES.len());
    assert_eq!(turn("ada:2", "one").await.status(), 200);
    for guess in 0..runs(500) {
        assert_eq!(turn("ada:1", &format!("guess-{guess}")).await.status(), 401);
    }
}

#[tokio::test]
#[covers("SERVE-03")]
async fn odd_keys_are_conversations_of_their_own_or_refused_and_nothing_is_written_elsewhere() {
    let directory = TempDir::new().unwrap();
    let root = directory.path().join("a/b/state");
    let store = Arc::new(FileStore::in_workspace(&root, "main").unwrap());
    let (agent, _) = long(1);
    let served = Served::with(agent, store, |service| service).await;
    for key in ["..%2F..%2Fup", "..", ".", "%2Fetc%2Fpasswd", "a:b", "%F0%9F%8C%8A", "%00", "%0A", "con", "%20"] {
        let response = served.turn(key, &json!({ "input": "hi", "wait": "result" }), None).await;
        let status = response.status().as_u16();
        assert!([200, 400, 404, 405].contains(&status), "{key}: {status}");
        if status == 200 {
            let (_, messages) = served.get(&served.at(key, "/messages")).await;
            assert_eq!(messages.as_array().map(Vec::len), Some(2), "{key}: {messages}");
        }
    }
    let beside: Vec<_> =
        std::fs::read_dir(directory.path().join("a/b")).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(beside, [root]);
}

/// A store that is away.
struct Away;

impl Away {
    fn error<T>() -> Result<T> {
        Err(Error::new(ErrorCode::STORE_IO, "the disk is full"))
    }
}

impl Store for Away {
    fn open<'a>(&'a self, _: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        Box::pin(async { Self::error() })
    }

    fn shared_state(&self, _: &ExtensionName) -> Result<Option<Value>> {
        Self::error()
    }
}

#[tokio::test]
#[covers("SERVE-01")]
async fn a_store_that_is_away_is_said() {
    let (agent, _) = long(1);
    let served = Served::with(agent, Arc::new(Away), |service| service).await;
    let (status, problem) = json_of(served.turn("ada", &hello(), None).await).await;
    assert_eq!((status, &problem["code"]), (503, &json!("E_STORE_IO")), "{problem}");
}
