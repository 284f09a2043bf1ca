//! The most memory of a process with many messages, many conversations, a command that writes a gigabyte, and an answer
//! that asks for a hundred requests at once. Each is a process of its own.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use goondan::name::{AgentName, InstanceKey};
use goondan::store::{FileStore, InstanceId};
use goondan_benches::instances::{INPUT, builder, key, with_history};
use goondan_benches::sample::{Sample, command, mega};
use goondan_benches::stored;
use tempfile::TempDir;

const QUICKSTART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/quickstart");
/// Set in the process that holds so many conversations.
const CONVERSATIONS: &str = "GOONDAN_BENCH_CONVERSATIONS";
/// The bytes of each of a hundred responses, of which all are read.
const RESPONSE: usize = 10_000_000;

fn main() {
    if let Some(number) = env::var(CONVERSATIONS).ok().and_then(|number| number.parse().ok()) {
        return hold(number);
    }
    let goondan = command(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory"));
    let state = TempDir::new().expect("a directory");
    let run = |bundle: &Path, instance: &str| {
        // Otherwise it asks before it runs a bundle that acts. A version that does not ask has no such command.
        let mut trust = Command::new(&goondan);
        _ = trust.args(["trust", "--dir"]).arg(bundle).arg("--state-root").arg(state.path()).output();
        let args = ["--input", "hello", "--instance", instance, "--fsync", "never", "--state-root"].map(OsStr::new);
        let args = ["run".as_ref(), bundle.as_os_str()].into_iter().chain(args).chain([state.path().as_os_str()]);
        sample(goondan.as_ref(), args)
    };
    println!("The most memory");
    for messages in [10_000, 100_000] {
        let keeps = bundle("guide", "", "- { say: fine }");
        let instance = format!("long{messages}");
        for (what, bundle, workspace) in [
            ("all are kept", keeps.path(), "guide"),
            ("a window removes all but twenty", QUICKSTART.as_ref(), "quickstart"),
        ] {
            let size = fs::metadata(long(state.path(), workspace, &instance, messages)).expect("a file").len() / 1024;
            let what = format!("{messages} messages of 500 characters, {what}");
            row(&what, run(bundle, &instance), &format!("{:.1} MB on the disk", mega(size)));
        }
    }
    let writes = "- call: { tool: bash__exec, args: { command: 'head -c 1000000000 /dev/zero | tr \"\\0\" x' } }\n\
                  - { say: fine }";
    row("a command that writes 1 GB", run(bundle("writes", "bash", writes).path(), "writes"), "");
    let calls = |count: usize| {
        let url = format!("http://{}/", listening());
        let call = format!("{{ tool: http-fetch__get, args: {{ url: '{url}', maxBytes: {RESPONSE} }} }}");
        format!("- calls: [{}]\n- {{ say: fine }}", vec![call; count].join(", "))
    };
    for count in [1, 16, 100] {
        let what = format!("{count} requests of one answer, with 10 MB each");
        row(&what, run(bundle("requests", "http-fetch", &calls(count)).path(), &format!("requests{count}")), "");
    }
    for number in [0, 10_000] {
        let own = env::current_exe().expect("a path");
        let variable = format!("{CONVERSATIONS}={number}");
        let args = [variable.as_ref(), own.as_os_str()];
        row(&format!("{number} open conversations, with 20 messages each"), sample("env".as_ref(), args), "");
    }
}

fn sample<'a>(program: &OsStr, args: impl IntoIterator<Item = &'a OsStr>) -> Sample {
    Sample::of(env!("CARGO_BIN_EXE_sample"), program, args)
}

fn row(what: &str, sample: Sample, more: &str) {
    println!("{what:<72} {:>10.1} MB {more}", mega(sample.memory));
}

/// Writes the bundle of an agent `guide` with a script, and with this extension.
fn bundle(name: &str, extension: &str, script: &str) -> TempDir {
    let config = if extension == "http-fetch" { "config: { allowHosts: ['127.0.0.1'] }" } else { "config: {}" };
    let (document, extensions) = match extension {
        "" => (String::new(), String::new()),
        name => (
            format!(
                "apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: {{ name: {name} }}\n\
                 spec: {{ entry: 'linked:{name}', {config} }}\n---\n"
            ),
            format!(", extensions: [{{ ref: Extension/{name} }}]"),
        ),
    };
    let documents = format!(
        "apiVersion: goondan.ai/v1\nkind: Model\nmetadata: {{ name: main }}\n\
         spec: {{ provider: scripted, script: ./script.yaml }}\n---\n{document}\
         apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: {{ name: guide }}\n\
         spec: {{ model: Model/main{extensions} }}\n"
    );
    let directory = tempfile::Builder::new().prefix(name).tempdir().expect("a directory");
    fs::write(directory.path().join("goondan.yaml"), documents).expect("a file");
    fs::write(directory.path().join("script.yaml"), script).expect("a file");
    directory
}

/// Writes a conversation and returns the file of its messages.
fn long(state: &Path, workspace: &str, instance: &str, messages: usize) -> PathBuf {
    let store = FileStore::in_workspace(state, workspace).expect("a store");
    let agent = AgentName::new("guide").expect("a legal name");
    stored::write(&store, &InstanceId { agent, key: InstanceKey::new(instance).expect("a legal key") }, messages)
}

/// Starts a server that answers each request with [`RESPONSE`] bytes, and returns its address.
fn listening() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(thread::spawn(|| answer(stream)))));
    address
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while request.read_line(&mut line)? > 2 {
        line.clear();
    }
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {RESPONSE}\r\n\r\n")?;
    stream.write_all(&vec![b'x'; RESPONSE])
}

/// Holds open conversations, each of which has run turns.
fn hold(number: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    runtime.expect("a runtime").block_on(async {
        let agent = builder(Duration::ZERO).build().expect("the agent is complete");
        let mut held = Vec::with_capacity(number);
        for index in 0..number {
            held.push(with_history(&agent, &key(index)).await.expect("an instance"));
        }
        for instance in &held {
            instance.run(INPUT).await.expect("a turn");
        }
    });
}
