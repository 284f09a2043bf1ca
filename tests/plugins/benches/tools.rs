//! What `tool-search` costs with 500 tools, linked and loaded: a step, and a search.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::time::{Duration, Instant};

use goondan::agent::AgentBuilder;
use goondan::extension::ExtensionApi;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::plugin::Library;
use goondan::tool::{ToolContext, ToolHandler, ToolItem, ToolReply};
use goondan::{Agent, BoxFuture, Result, Value, json};
use goondan_libraries::Build;
use tool_search as _;

const TURNS: usize = 1000;

/// 500 tools that do nothing.
struct Tools;

struct Nothing;

impl ToolHandler for Nothing {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(std::future::ready(Ok(Value::Null.into())))
    }
}

#[goondan::extension(name = "tools")]
impl Tools {
    #[init]
    fn new(api: ExtensionApi) -> Result<Self> {
        let text = json!({ "type": "string", "description": "The thing that the tool is about." });
        let parameters = json!({ "type": "object", "properties": { "one": text, "two": text }, "required": ["one"] });
        for index in 0..500 {
            let item = ToolItem::new(&format!("group{}__tool_{index}", index % 25))?;
            let item = item.describe(format!(
                "Does the thing number {index} to whatever it is given, and returns what has become of it, with all \
                 the details that a caller may want to know about it afterwards."
            ));
            api.tools().register(item.parameters(parameters.clone()), Nothing)?;
        }
        Ok(Self)
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let library = Build::ready_made("tool-search").profile("release").run(env!("CARGO_TARGET_TMPDIR"));
    let library = Library::inspect(library).unwrap().load().unwrap();
    let search = |query: &str| [ScriptItem::call("tool-search__search", json!({ "query": query })), say()];
    let other = || [ScriptItem::call("group1__tool_1", json!({ "one": "" })), say()];
    for _ in 0..3 {
        let bare = runtime.block_on(turns(|agent| agent, [], other()));
        let linked = |agent: AgentBuilder| agent.linked_extension("tool-search", "tool-search", json!({}));
        let loaded =
            |agent: AgentBuilder| agent.described_extension("tool-search", library.extension(None).unwrap(), json!({}));
        let cost = |name, all: Duration, reduced: Duration, searching: Duration| {
            let two_steps = |time: Duration| (time.as_secs_f64() - bare.as_secs_f64()) / 2.0 * 1e6;
            println!(
                "{name}: step {:.1} µs, reduced step {:.1} µs, turn with a search {searching:?}, without {bare:?}",
                two_steps(all),
                two_steps(reduced)
            );
        };
        let all = runtime.block_on(turns(linked, [], other()));
        let reduced = runtime.block_on(turns(linked, search("tool_1"), other()));
        let searching = runtime.block_on(turns(linked, [], search("thing number 499")));
        cost("linked", all, reduced, searching);
        let all = runtime.block_on(turns(loaded, [], other()));
        let reduced = runtime.block_on(turns(loaded, search("tool_1"), other()));
        let searching = runtime.block_on(turns(loaded, [], search("thing number 499")));
        cost("loaded", all, reduced, searching);
    }
}

fn say() -> ScriptItem {
    ScriptItem::say("done")
}

/// Returns the median time of a turn of two steps that plays `script`, after one that plays `first`.
async fn turns<const N: usize>(
    add: impl Fn(AgentBuilder) -> AgentBuilder,
    first: [ScriptItem; N],
    script: [ScriptItem; 2],
) -> Duration {
    let all = (0..100).flat_map(|_| script.clone());
    let mut times = Vec::new();
    for _ in 0..TURNS / 100 {
        // The conversations stay short.
        let model = ScriptedModel::new(first.clone().into_iter().chain(all.clone()));
        let agent = add(Agent::builder("one").model(model).extension::<Tools>(json!({}))).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        if N > 0 {
            instance.run("go").await.unwrap();
        }
        for _ in 0..100 {
            let start = Instant::now();
            instance.run("go").await.unwrap();
            times.push(start.elapsed());
        }
        instance.close().await.unwrap();
    }
    times.sort();
    times[times.len() / 2]
}
