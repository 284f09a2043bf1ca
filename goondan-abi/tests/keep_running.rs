//! Tasks that outlive the conversation that spawned them (LINK-04). The test is alone in its process, because the
//! extensions of other tests would keep the runtime of the library running.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the other items are for the test `library`")]
#[path = "library/support.rs"]
mod support;

use goondan_covers::covers;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use support::{BOTH, Linkage, agent};

/// Opens and closes a conversation, and returns the connection that it made.
async fn connected(linkage: Linkage, keep: bool) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = json!({ "address": listener.local_addr().unwrap(), "keep": keep });
    let agent = agent([]).described_extension("pooled", linkage.extension("pooled"), config).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    instance.close().await.unwrap();
    stream
}

/// Returns what the task answers, or that the connection was closed.
async fn answer(stream: &mut TcpStream) -> std::io::Result<u8> {
    stream.write_u8(7).await?;
    stream.read_u8().await
}

#[tokio::test]
#[covers("LINK-04")]
async fn a_task_outlives_its_conversation_as_long_as_it_keeps_the_runtime_running() {
    for linkage in BOTH {
        let mut kept = connected(linkage, true).await;
        assert_eq!(answer(&mut kept).await.unwrap(), 7, "{linkage:?}");
        // The task ends, and drops its guard.
        drop(kept);
    }
    // Linked, it runs on the runtime of the program in any case.
    assert_eq!(answer(&mut connected(Linkage::Linked, false).await).await.unwrap(), 7);
}

#[tokio::test]
async fn a_guard_keeps_the_runtime_for_other_tasks_too() {
    let mut kept = connected(Linkage::Library, true).await;
    let mut other = connected(Linkage::Library, false).await;
    assert_eq!(answer(&mut other).await.unwrap(), 7);
    kept.shutdown().await.unwrap();
    // Its task reads the end of the stream, ends, and drops the last guard: the runtime drops the other one.
    assert_eq!(other.read_u8().await.unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
}
