//! tokio in libraries: tasks, timers, connections, cancellation, logs (LINK-04).

use std::io::Write;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use goondan_core::{BoxFuture, Result};
use goondan_covers::covers;
use goondan_runtime::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{Linkage, agent, modes};

/// The log of this process, from all tests.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Write::write(&mut *self.0.lock().unwrap(), bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

static LINES: Mutex<Option<Lines>> = Mutex::new(None);

/// Installs a subscriber that keeps the log, and returns the log.
pub(crate) fn listen() -> Lines {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let lines = Lines::default();
        *LINES.lock().unwrap() = Some(lines.clone());
        let subscriber = tracing_subscriber::fmt().with_writer(lines).with_ansi(false);
        subscriber.with_max_level(tracing::Level::INFO).init();
    });
    LINES.lock().unwrap().clone().unwrap()
}

impl Lines {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
#[covers("LINK-04")]
async fn tasks_timers_and_blocking_work_run_and_log() {
    let lines = listen();
    let agent = modes(Linkage::Library, json!({ "mode": "runtime" }), [ScriptItem::say("hi")]);
    let instance = agent.build().unwrap().instance("one").await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "hi");
    assert!(lines.text().contains("WARN fixture::task: in a task answer=42"), "{}", lines.text());
}

#[tokio::test]
async fn connections_work() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
    });
    let agent = modes(Linkage::Library, json!({ "mode": "tcp", "address": address }), [ScriptItem::say("hi")]);
    let instance = agent.build().unwrap().instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    server.await.unwrap();
    assert_eq!(instance.messages().await.unwrap()[1].text(), "ping");
}

#[tokio::test]
async fn log_lines_keep_target_level_fields_and_the_hosts_span() {
    let lines = listen();
    let agent = modes(Linkage::Library, json!({ "mode": "log" }), [ScriptItem::say("hi")]);
    let instance = agent.build().unwrap().instance("logging").await.unwrap();
    instance.run("hello").await.unwrap();
    let text = lines.text();
    let line = text.lines().find(|line| line.contains("abi_fixture::modes: hello")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("INFO"), "{line}");
    assert!(line.ends_with(r#"hello answer=42 share=0.5 who="fixture" shape=[1] yes=true"#), "{line}");
    assert!(!text.contains("below the level"), "{text}");
}

#[tokio::test]
async fn what_the_host_cancels_is_dropped_inside_of_the_librarys_runtime() {
    let lines = listen();
    for mode in ["hang", "panic-in-drop"] {
        let agent = modes(Linkage::Library, json!({ "mode": mode }), [ScriptItem::say("hi")]);
        let instance = agent.build().unwrap().instance("one").await.unwrap();
        let before = lines.text().matches("dropped runtime=true").count();
        tokio::time::timeout(Duration::from_millis(50), instance.run("hello")).await.unwrap_err();
        assert_eq!(lines.text().matches("dropped runtime=true").count(), before + 1, "{mode}");
        // The conversation goes on.
        instance.close().await.unwrap();
    }
    assert!(lines.text().contains("in drop"), "{}", lines.text());
}

/// A model that never answers, and notifies when its future is dropped.
struct Silent(Arc<Notify>);

struct Gone(Arc<Notify>);

impl Drop for Gone {
    fn drop(&mut self) {
        // Panics outside of the host's runtime.
        tokio::runtime::Handle::current();
        self.0.notify_one();
    }
}

impl Model for Silent {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let gone = Gone(Arc::clone(&self.0));
        Box::pin(async move {
            let _gone = gone;
            std::future::pending().await
        })
    }
}

#[tokio::test]
async fn what_the_library_cancels_is_dropped_in_the_host() {
    let gone = Arc::new(Notify::new());
    let agent = agent([]).model(Silent(Arc::clone(&gone)));
    let modes = Linkage::Library.extension("modes");
    let agent = agent.described_extension("modes", modes, json!({ "mode": "timeout-next" }));
    let instance = agent.build().unwrap().instance("one").await.unwrap();
    let error = instance.run("hello").await.unwrap_err();
    assert_eq!(error.message(), "too slow");
    gone.notified().await;
}

#[tokio::test]
async fn a_chain_through_several_layers_of_a_library_works() {
    let mut agent = agent([ScriptItem::say("hi")]);
    for number in 0..8 {
        let name = ["noop", "light"][number % 2];
        agent = agent.described_extension(format!("layer-{number}"), Linkage::Library.extension(name), json!({}));
    }
    let instance = agent.build().unwrap().instance("one").await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "hi");
}

#[tokio::test]
async fn failures_are_retried_and_recovered_from() {
    for linkage in crate::support::BOTH {
        let retry = modes(linkage, json!({ "mode": "retry" }), [ScriptItem::say("hi")]);
        let instance = retry.build().unwrap().instance("one").await.unwrap();
        assert_eq!(instance.run("hello").await.unwrap().text(), "hi");
        let recover = modes(linkage, json!({ "mode": "recover" }), [ScriptItem::fail("no", true)]);
        let instance = recover.build().unwrap().instance("one").await.unwrap();
        assert!(instance.run("hello").await.is_ok());
        let pass_on = modes(linkage, json!({ "mode": "pass-on" }), [ScriptItem::fail("no", true)]);
        let instance = pass_on.build().unwrap().instance("one").await.unwrap();
        let error = instance.run("hello").await.unwrap_err();
        assert_eq!((error.extension(), error.is_retryable()), (None, true), "{error:?}");
        assert_eq!(error.turn().unwrap().steps, 1);
    }
}
