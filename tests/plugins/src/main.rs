//! An MCP server with odd habits, for tests: it hangs, dies, changes its tools, ignores the signals that ask it to end,
//! has children, and offers odd schemas. It answers one message after the other.
//!
//! ```text
//! odd-server [fail | noisy | silent | mute | strict] [modern] [stubborn] [child] [http [json]] [pages] [id-last]
//!            [log=<file>] [tools=<file>] [list=<file>]
//! ```
//!
//! - `fail`: writes thirty lines to its standard error, and ends.
//! - `noisy`: writes lines that are no messages, to its standard output and error.
//! - `silent`: never answers `initialize`.
//! - `mute`: never answers `tools/list`.
//! - `strict`: ends when it reads a request that it does not know.
//! - `modern`: speaks the version 2026-07-28 of the protocol, which has no `initialize`, and in which announcements are
//!   sent only to subscriptions.
//! - `stubborn`: ignores the end of its input, and `SIGTERM`.
//! - `child`: has a child that sleeps, with its standard output and error.
//! - `http`: listens on a port of the loopback interface instead of its standard input, and logs which.
//! - `json`: answers over HTTP with one message instead of a stream of events.
//! - `id-last`: answers name their request behind the result.
//! - `pages`: each list of tools names a next one, which has a tool more.
//! - `log=<file>`: appends lines that say what happens.
//! - `tools=<file>`: offers the tools in a JSON file besides its own. The call of one returns its name.
//! - `list=<file>`: offers the list of tools in a file, which is not read, and so can be large. Not over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test server that fails should say where")]

mod http;

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::process::{Command, exit};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

fn main() {
    let options: Vec<String> = std::env::args().skip(1).collect();
    let mut server = Server::new(&options);
    if server.has("fail") {
        (1..=30).for_each(|line| eprintln!("line {line}"));
        exit(3);
    }
    if server.has("noisy") {
        println!("Welcome!\n\n{{\"level\":\"info\"}}\n[]");
        eprintln!("Welcome, too!");
    }
    if server.has("stubborn") {
        // A handler that does nothing else than to set a flag, which is never read.
        let flag = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGTERM, flag).unwrap();
    }
    if server.has("child") {
        server.start_child();
    }
    if server.has("http") {
        http::serve(server);
    }
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        for answer in server.receive(&message) {
            let mut output = io::stdout().lock();
            // The client may have closed the pipe.
            let answer = answer.to_string().replace(&json!(LIST).to_string(), server.list.as_deref().unwrap_or("[]"));
            let _ = output.write_all(format!("{answer}\n").as_bytes()).and_then(|()| output.flush());
        }
    }
    server.log("end of input");
    while server.has("stubborn") {
        std::thread::park();
    }
}

/// Where a message says to which subscription it belongs.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What stands for the list in a file.
const LIST: &str = "the list in the file";

struct Server {
    options: Vec<String>,
    list: Option<String>,
    log: Option<File>,
    tools: Vec<Value>,
    resources: Vec<Value>,
    /// The ids of the requests for announcements.
    subscriptions: Vec<Value>,
    /// Messages that are still to be sent.
    outbox: Vec<Value>,
    /// The calls that wait for answers to questions: the id of the call, how often it asks still, and the question.
    asking: Vec<(Value, u64, Value)>,
    /// Whether the person has opened what a call needs.
    opened: bool,
}

fn any(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

impl Server {
    fn new(options: &[String]) -> Self {
        let value = |key: &str| options.iter().find_map(|option| option.strip_prefix(key));
        let log = value("log=").map(|path| OpenOptions::new().create(true).append(true).open(path).unwrap());
        let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let mut tools = vec![json!({ "name": "echo", "description": "Returns a text.", "inputSchema": text })];
        let names = [
            "pid",
            "env",
            "directory",
            "hang",
            "die",
            "orphan",
            "add",
            "remove",
            "change",
            "describe",
            "long",
            "deep",
            "fail",
            "refuse",
            "image",
            "data",
            "elicit",
            "open_first",
            "sample",
            "progress",
            "write",
            "withdraw",
            "unsubscribe",
        ];
        tools.extend(names.map(any));
        tools[1]["annotations"] = json!({ "readOnlyHint": true });
        if let Some(path) = value("tools=") {
            let more: Vec<Value> = serde_json::from_reader(File::open(path).unwrap()).unwrap();
            tools.extend(more);
        }
        let about = "The first\n- odd://two";
        let one = json!({ "uri": "odd://one", "name": "One", "description": about, "mimeType": "text/plain" });
        let resources = vec![one];
        let list = value("list=").map(|path| std::fs::read_to_string(path).unwrap());
        let (subscriptions, outbox, asking) = Default::default();
        let options = options.to_vec();
        let mut server = Self { options, list, log, tools, resources, subscriptions, outbox, asking, opened: false };
        server.log(&format!("start {}", std::process::id()));
        server
    }

    fn has(&self, option: &str) -> bool {
        self.options.iter().any(|given| given == option)
    }

    fn log(&mut self, line: &str) {
        if let Some(log) = &mut self.log {
            log.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        self.outbox.push(message);
    }

    /// Returns what is sent when `message` has been read; nothing if it is not answered.
    fn receive(&mut self, message: &Value) -> Vec<Value> {
        self.handle(message);
        std::mem::take(&mut self.outbox)
    }

    #[expect(clippy::zombie_processes, reason = "it is to outlive the server")]
    fn start_child(&mut self) {
        let child = Command::new("sleep").arg("100000").spawn().unwrap();
        self.log(&format!("child {}", child.id()));
    }

    /// Asks the client for something, on behalf of a call.
    fn ask(&mut self, call: &Value, times: u64, question: &Value) {
        self.asking.push((call.clone(), times, question.clone()));
        let mut request = question.clone();
        request["id"] = format!("question of {call}").into();
        self.send(request);
    }

    /// Takes an answer of the client.
    fn answered(&mut self, answer: &Value) {
        let of = |call: &Value| answer["id"] == format!("question of {call}");
        let Some(at) = self.asking.iter().position(|(call, _, _)| of(call)) else { return };
        let (call, times, question) = self.asking.remove(at);
        match times {
            0 | 1 => {
                let answer = if answer["error"].is_null() { &answer["result"] } else { &answer["error"] };
                let content = json!([{ "type": "text", "text": answer.to_string() }]);
                self.send(json!({ "id": call, "result": { "content": content } }));
            }
            times => self.ask(&call, times - 1, &question),
        }
    }

    #[expect(clippy::too_many_lines, reason = "a branch each method")]
    fn handle(&mut self, message: &Value) {
        if message["method"].is_null() {
            return self.answered(message);
        }
        let (id, params) = (&message["id"], &message["params"]);
        let changing = json!({ "listChanged": true });
        let capabilities = json!({ "tools": changing, "resources": changing, "prompts": {} });
        let info = json!({ "name": "odd", "version": "1" });
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" | "server/discover" if self.has("silent") => return,
            "initialize" if self.has("modern") => json!("there is no handshake"),
            "initialize" => {
                self.log(&format!("version {}", params["protocolVersion"].as_str().unwrap()));
                self.log(&format!("capabilities {}", params["capabilities"]));
                json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": capabilities,
                    "serverInfo": info,
                })
            }
            "server/discover" if self.has("modern") => {
                let meta = |key: &str| &params["_meta"][format!("io.modelcontextprotocol/{key}")];
                self.log(&format!("version {}", meta("protocolVersion").as_str().unwrap()));
                self.log(&format!("capabilities {}", meta("clientCapabilities")));
                json!({
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": capabilities,
                    "ttlMs": 0,
                    "cacheScope": "private",
                    "_meta": { "io.modelcontextprotocol/serverInfo": info },
                })
            }
            "subscriptions/listen" if self.has("modern") => {
                self.log("subscription");
                self.subscriptions.push(id.clone());
                let filter = json!({ "notifications": params["notifications"] });
                return self.announce("notifications/subscriptions/acknowledged", id, filter);
            }
            "tools/list" if self.has("mute") => return,
            "tools/list" if self.has("pages") => {
                let page = params["cursor"].as_str().map_or(0, |cursor| cursor.parse::<u64>().unwrap());
                self.log(&format!("page {page}"));
                json!({ "tools": [any(&format!("page{page}"))], "nextCursor": (page + 1).to_string() })
            }
            "tools/list" if self.list.is_some() => json!({ "tools": LIST }),
            "tools/list" => json!({ "tools": self.tools }),
            "tools/call" if !params["inputResponses"].is_null() => {
                self.log(&format!("state {}", params["requestState"]));
                let content = json!([{ "type": "text", "text": params["inputResponses"].to_string() }]);
                json!({ "content": content })
            }
            "tools/call" if params["name"] == "open_first" && !self.opened => {
                self.opened = true;
                let data = json!({ "elicitations": [params["arguments"]] });
                return self.send(json!({ "id": id, "error": { "code": -32042, "message": "open it", "data": data } }));
            }
            "tools/call" if params["name"] == "elicit" || params["name"] == "sample" => {
                let arguments = &params["arguments"];
                let method = if params["name"] == "elicit" { "elicitation/create" } else { "sampling/createMessage" };
                let question = json!({ "method": method, "params": arguments["params"] });
                if self.has("modern") {
                    json!({ "resultType": "input_required", "inputRequests": { "q": question }, "requestState": "s" })
                } else {
                    self.ask(id, arguments["times"].as_u64().unwrap_or(1), &question);
                    return;
                }
            }
            "tools/call" if params["name"] == "progress" => {
                let token = &params["_meta"]["progressToken"];
                for (done, text) in [(1, "half\u{1b}[2J"), (2, "all")] {
                    let params = json!({ "progressToken": token, "progress": done, "total": 2, "message": text });
                    self.send(json!({ "method": "notifications/progress", "params": params }));
                }
                json!({ "content": [] })
            }
            "tools/call" => match self.call(params["name"].as_str().unwrap(), &params["arguments"]) {
                Some(result) => result,
                None => return,
            },
            "resources/list" => json!({ "resources": self.resources }),
            "resources/read" => {
                let uri = &params["uri"];
                json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": format!("the text of {uri}") }] })
            }
            "prompts/list" => {
                json!({ "prompts": [{ "name": "greet", "arguments": [{ "name": "who", "required": true }] }] })
            }
            "prompts/get" => {
                let text = format!("Greet {}.", params["arguments"]["who"]);
                json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] })
            }
            "notifications/cancelled" => return self.log(&format!("cancelled {}", params["requestId"])),
            method => {
                if !id.is_null() {
                    self.log(&format!("unknown {method}"));
                    if self.has("strict") {
                        exit(9);
                    }
                    let error = json!({ "code": -32601, "message": format!("there is no method `{method}`") });
                    self.send(json!({ "id": id, "error": error }));
                }
                return;
            }
        };
        match result {
            Value::String(refusal) => {
                self.send(json!({ "id": id, "error": { "code": -32000, "message": refusal } }));
            }
            mut result => {
                if self.has("modern") && result["resultType"].is_null() {
                    result["resultType"] = "complete".into();
                }
                self.send(match self.has("id-last") {
                    true => json!({ "result": result, "id": id }),
                    false => json!({ "id": id, "result": result }),
                });
            }
        }
    }

    /// Sends a notification that belongs to a subscription.
    fn announce(&mut self, method: &str, subscription: &Value, mut params: Value) {
        params["_meta"] = json!({ SUBSCRIPTION: subscription });
        self.send(json!({ "method": method, "params": params }));
    }

    /// Returns the result of a call, `None` if there is none, and a text if the call is refused.
    #[expect(clippy::too_many_lines, reason = "a branch each tool")]
    fn call(&mut self, tool: &str, arguments: &Value) -> Option<Value> {
        self.log(&format!("call {tool}"));
        let text = |text: String| Some(json!({ "content": [{ "type": "text", "text": text }] }));
        let name = arguments["name"].as_str().unwrap_or_default();
        match tool {
            "echo" => text(arguments["text"].as_str().unwrap().to_owned()),
            "pid" => text(std::process::id().to_string()),
            "env" => text(std::env::var(name).unwrap_or_default()),
            "directory" => text(std::env::current_dir().unwrap().display().to_string()),
            "hang" => None,
            "die" => exit(7),
            // What it leaves behind holds its output.
            "orphan" => {
                self.start_child();
                exit(8)
            }
            "add" => {
                self.tools.push(any(name));
                self.resources.push(json!({ "uri": format!("odd://{name}"), "name": name }));
                self.changed();
                text("added".to_owned())
            }
            "remove" => {
                self.tools.retain(|tool| tool["name"] != name);
                self.changed();
                text("removed".to_owned())
            }
            // The tool `name` needs a number from now on, and has other properties, if these are counted.
            "change" => {
                let mut schema =
                    json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
                for index in 0..arguments["properties"].as_u64().unwrap_or_default() {
                    schema["properties"][format!("p{}-{index}", arguments["since"])] = json!({});
                }
                self.tools
                    .iter_mut()
                    .filter(|tool| tool["name"] == name)
                    .for_each(|tool| tool["inputSchema"] = schema.clone());
                self.changed();
                text("changed".to_owned())
            }
            // The tool `name` has another description from now on.
            "describe" => {
                let tools = self.tools.iter_mut().filter(|tool| tool["name"] == name);
                tools.for_each(|tool| tool["description"] = arguments["text"].clone());
                self.changed();
                text("described".to_owned())
            }
            "deep" => {
                let deep = (0..arguments["depth"].as_u64().unwrap()).fold(json!([]), |inner, _| json!([inner]));
                Some(json!({ "content": [], "structuredContent": { "deep": deep } }))
            }
            "long" => text("x".repeat(usize::try_from(arguments["length"].as_u64().unwrap()).unwrap())),
            "fail" => Some(json!({ "isError": true, "content": [{ "type": "text", "text": "it went wrong" }] })),
            "refuse" => Some(json!("not today")),
            "image" => Some(json!({ "content": [
                { "type": "text", "text": "a dot" },
                { "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" },
            ] })),
            "data" => Some(json!({ "content": [], "structuredContent": { "answer": 42 } })),
            // Takes all questions back.
            "withdraw" => {
                for (call, _, _) in std::mem::take(&mut self.asking) {
                    let params = json!({ "requestId": format!("question of {call}") });
                    self.send(json!({ "method": "notifications/cancelled", "params": params }));
                    let content = json!([{ "type": "text", "text": "all questions are taken back" }]);
                    self.send(json!({ "id": call, "result": { "content": content } }));
                }
                text("withdrawn".to_owned())
            }
            "write" => {
                for (level, data) in
                    [("debug", json!("one")), ("warning", json!({ "two": 2 })), ("alert", json!("three"))]
                {
                    let params = json!({ "level": level, "logger": "db", "data": data });
                    self.send(json!({ "method": "notifications/message", "params": params }));
                }
                text("written".to_owned())
            }
            "unsubscribe" => {
                for id in std::mem::take(&mut self.subscriptions) {
                    let meta = json!({ SUBSCRIPTION: id });
                    self.send(json!({ "id": id, "result": { "resultType": "complete", "_meta": meta } }));
                }
                text("unsubscribed".to_owned())
            }
            other => text(format!("{other} {arguments}")),
        }
    }

    fn changed(&mut self) {
        for method in ["notifications/tools/list_changed", "notifications/resources/list_changed"] {
            if !self.has("modern") {
                self.send(json!({ "method": method }));
            }
            for id in self.subscriptions.clone() {
                self.announce(method, &id, json!({}));
            }
        }
    }
}
