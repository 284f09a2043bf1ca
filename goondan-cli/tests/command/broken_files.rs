//! Broken files, from a server and by `--file`, in conversations with a provider that refuses them.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;

use goondan_covers::covers;
use goondan_libraries::Build;
use serde_json::json;
use tempfile::TempDir;

use crate::provider::Provider;
use crate::support::{goondan, stderr, stdout};

/// The beginning of a PNG of one pixel. No more than that is checked before a provider looks at it.
const CUT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
const WHOLE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What the tools of the server show: their names, the type and the content of an image, and how many requests with it
/// the provider refuses.
const SHOWN: [(&str, &str, &str, usize); 6] = [
    ("whole", "image/png", WHOLE, 0),
    ("wrong", "image/png", "/9j/4AAQSkZJRg==", 0),
    ("garbled", "image/png", "no base64", 0),
    ("empty", "image/png", "", 0),
    ("svg", "image/svg+xml", "PHN2Zy8+", 0),
    ("cut", "image/png", CUT, 1),
];

/// A server whose tools answer with what is in files beside it.
const SERVER: &str = r#"
answer() {
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"
}
while read -r message; do
  id=$(printf '%s' "$message" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $message in
  *'"method":"initialize"'*)
    answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"files","version":"1"}}'
    ;;
  *'"method":"tools/list"'*) answer "$(cat tools)" ;;
  *'"method":"tools/call"'*)
    answer "$(cat "$(printf '%s' "$message" | sed -n 's/.*"name":"\([a-z]*\)".*/\1/p')")"
    ;;
  *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
  esac
done
"#;

/// A bundle whose model asks a provider, with the server.
struct Fixture {
    dir: TempDir,
    provider: Provider,
}

impl Fixture {
    /// `entry` is that of the extension `mcp`.
    fn new(entry: &str) -> Self {
        let (dir, provider) = (TempDir::new().unwrap(), Provider::start());
        let bundle = format!(
            "apiVersion: goondan.ai/v1
kind: Model
metadata: {{ name: main }}
spec: {{ provider: anthropic, model: m, baseUrl: '{}', apiKey: key-for-tests-4711 }}
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: {{ name: files }}
spec: {{ entry: '{entry}', config: {{ transport: {{ type: stdio, command: [sh, server.sh] }} }} }}
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: {{ name: main }}
spec: {{ model: Model/main, extensions: [ {{ ref: Extension/files }} ] }}
",
            provider.url()
        );
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("goondan.yaml", &bundle);
        write("server.sh", SERVER);
        let tools = SHOWN.map(|(name, ..)| json!({ "name": name, "inputSchema": { "type": "object" } }));
        write("tools", &json!({ "tools": tools }).to_string());
        for (name, media_type, data, _) in SHOWN {
            let image = json!({ "type": "image", "mimeType": media_type, "data": data });
            write(name, &json!({ "content": [{ "type": "text", "text": "look:" }, image] }).to_string());
        }
        Self { dir, provider }
    }

    fn state(&self) -> std::path::PathBuf {
        self.dir.path().join("state")
    }

    /// Runs one turn of a conversation in a process of its own.
    fn turn(&self, conversation: &str, input: &str, files: &[&Path]) -> Output {
        let mut command = goondan();
        command
            .args(["run", "--trust", "--instance", conversation, "--input", input, "--state-root"])
            .arg(self.state());
        files.iter().for_each(|file| _ = command.arg("--file").arg(file));
        command.arg(self.dir.path()).output().unwrap()
    }

    /// Asserts that a turn is answered, after `refused` requests that the provider refused.
    #[track_caller]
    fn is_answered(&self, output: &Output, refused: usize) {
        assert_eq!((output.status.code(), stdout(output)), (Some(0), "fine\n"), "{}", stderr(output));
        let statuses = self.provider.statuses();
        assert_eq!(statuses.iter().filter(|status| **status == 400).count(), refused, "{statuses:?}");
    }
}

/// Returns the entries of the extension `mcp`, linked and in a library, with what to copy into a bundle.
fn entries() -> [(&'static str, Option<&'static Path>); 2] {
    static LIBRARY: OnceLock<std::path::PathBuf> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| Build::ready_made("mcp").run(env!("CARGO_TARGET_TMPDIR")));
    [("linked:mcp", None), ("./libmcp.so", Some(library))]
}

#[test]
#[covers("REFUSED-01")]
fn a_conversation_with_each_kind_of_broken_file_goes_on_in_its_next_turn() {
    for (entry, library) in entries() {
        let fixture = Fixture::new(entry);
        if let Some(library) = library {
            fs::copy(library, fixture.dir.path().join(entry)).unwrap();
        }
        for (name, _, _, refused) in SHOWN {
            fixture.is_answered(&fixture.turn(name, &format!("show {name}"), &[]), refused);
            fixture.is_answered(&fixture.turn(name, "go on", &[]), 0);
        }

        let content = |name: &str, content: &[u8]| {
            let path = fixture.dir.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let photo = content("photo.png", b"\xff\xd8\xff\xe0");
        let refused = fixture.turn("photo", "what is this?", &[&photo]);
        assert_eq!((refused.status.code(), fixture.provider.statuses()), (Some(1), vec![]), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("E_INPUT_FILE"), "{}", stderr(&refused));
        fixture.is_answered(&fixture.turn("photo", "go on", &[]), 0);

        let cut = content("cut.png", b"\x89PNG\r\n\x1a\n");
        fixture.is_answered(&fixture.turn("cut-input", "what is this?", &[&cut]), 1);
        fixture.is_answered(&fixture.turn("cut-input", "go on", &[]), 0);
    }
}
