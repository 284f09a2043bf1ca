//! PATTERN-SEARCH: the extension `tool-search` among other tools.

use std::fs;
use std::path::{Path, PathBuf};

use goondan::extension::ExtensionApi;
use goondan::model::ScriptItem;
use goondan::store::FileStore;
use goondan::testing::{Chat, ChatBuilder};
use goondan::tool::{ToolContext, ToolHandler, ToolItem, ToolReply};
use goondan::{BoxFuture, Result, Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::linkage::WithPlugin;
use crate::mcp::support::Odd;

const SEARCH: &str = "tool-search__search";

/// Tools that do nothing.
struct Office;

struct Nothing;

impl ToolHandler for Nothing {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move { Ok(ToolReply::text(format!("{} ran", ctx.tool_name()))) })
    }
}

fn register(api: &ExtensionApi, name: &str, description: &str) -> Result<()> {
    api.tools().register(ToolItem::new(name)?.describe(description), Nothing)
}

#[goondan::extension(name = "office")]
impl Office {
    #[init]
    fn new(api: ExtensionApi) -> Result<Self> {
        register(&api, "mail__send", "Sends a letter.")?;
        register(&api, "files__read", "Reads a file.")?;
        register(&api, "mail__list", "Lists what has arrived.")?;
        register(&api, "files__list", "Lists the files.")?;
        register(&api, "skills__list", "Shows the skills.")?;
        Ok(Self)
    }

    /// Brings another tool.
    #[tool(name = "office__hire")]
    async fn hire(&self, api: &ExtensionApi) -> Result<()> {
        register(api, "mail__burn", "Destroys a letter.")
    }
}

const ALL: [&str; 7] =
    ["office__hire", "mail__send", "files__read", "mail__list", "files__list", "skills__list", SEARCH];

fn builder(config: Value) -> ChatBuilder {
    Chat::builder().agent(|agent| agent.extension::<Office>(json!({})).plugin("tool-search", "tool-search", config))
}

async fn chat(config: Value) -> Chat {
    builder(config).start().await.unwrap()
}

async fn search(chat: &mut Chat, input: Value) -> Value {
    let result = chat.call(SEARCH, input).await.unwrap();
    result.output().unwrap_or_else(|| panic!("{result:?}")).clone()
}

/// Returns the names of the tools that the model is offered in the next step.
async fn offered(chat: &Chat) -> Vec<String> {
    chat.say("hello").await.unwrap();
    chat.last_request().tool_names().into_iter().map(str::to_owned).collect()
}

fn names(found: &Value) -> Vec<&str> {
    found["results"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[both_linkages]
#[covers("PATTERN-SEARCH-01", "PATTERN-SEARCH-04")]
async fn a_search_finds_tools_by_words_of_their_names_and_descriptions() {
    let mut chat = chat(json!({})).await;
    let mut all = ALL;
    // The macro's tools are registered after those of `#[init]`.
    all[..6].rotate_left(1);
    assert_eq!(offered(&chat).await, all, "without a selection, the catalog is as it is");
    let found = search(&mut chat, json!({ "query": "LETTER" })).await;
    assert_eq!(found["results"], json!([{ "name": "mail__send", "description": "Sends a letter." }]));
    assert_eq!(found["query"], "LETTER");
    assert_eq!(names(&search(&mut chat, json!({ "query": "list files" })).await), ["files__list"]);
    let lists = ["mail__list", "files__list", "skills__list"];
    assert_eq!(names(&search(&mut chat, json!({ "query": "list" })).await), lists);
    assert_eq!(names(&search(&mut chat, json!({ "query": "list", "limit": 2 })).await), lists[..2]);
    let refused = chat.call(SEARCH, json!({ "query": "  " })).await.unwrap();
    assert_eq!(refused.error().unwrap().code.as_deref(), Some("E_TOOL_SEARCH_QUERY"));
}

fn state_file(directory: &Path) -> Option<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).find_map(|path| {
        if path.is_dir() { state_file(&path) } else { path.ends_with("tool-search.json").then_some(path) }
    })
}

#[both_linkages]
#[covers("PATTERN-SEARCH-02")]
async fn what_was_found_is_in_the_state_and_outlasts_a_restart() {
    let store = TempDir::new().unwrap();
    let files = FileStore::open(store.path()).unwrap();
    let mut chat = builder(json!({})).agent(|agent| agent.store(files)).start().await.unwrap();
    search(&mut chat, json!({ "query": "mail" })).await;
    let states = chat.instance().states().await.unwrap();
    let kept = states.iter().find(|(name, _)| name.as_str() == "tool-search").unwrap().1.clone();
    assert_eq!(kept, json!({ "selectedTools": ["mail__send", "mail__list"], "lastQuery": "mail" }));
    chat.restart().await.unwrap();
    assert_eq!(offered(&chat).await, ["skills__list", SEARCH, "mail__send", "mail__list"]);
    let state = fs::read_to_string(state_file(store.path()).unwrap()).unwrap();
    assert!(state.contains("mail__send") && state.contains("selectedTools"), "{state}");
}

#[both_linkages]
#[covers("PATTERN-SEARCH-03")]
async fn the_next_step_has_the_selected_tools_in_the_order_in_which_they_were_found() {
    let script = [
        ScriptItem::call(SEARCH, json!({ "query": "file" })),
        ScriptItem::call(SEARCH, json!({ "query": "send" })),
        ScriptItem::call("mail__send", json!({})),
        ScriptItem::call("mail__list", json!({})),
        ScriptItem::say("done"),
    ];
    let chat = builder(json!({})).script(script).start().await.unwrap();
    chat.say("go").await.unwrap();
    let requests = chat.requests();
    let tools: Vec<_> = requests.iter().map(|request| request.tool_names()).collect();
    assert_eq!(tools[0].len(), 7);
    assert_eq!(tools[1], ["skills__list", SEARCH, "files__read", "files__list"]);
    assert_eq!(tools[2][..4], tools[1], "no tool has moved");
    assert_eq!(tools[2][4..], ["mail__send"], "found outside of the first selection");
    let transcript = chat.transcript().await;
    assert!(transcript.iter().any(|line| line == "tool: mail__send ran"), "{transcript:?}");
    assert!(transcript.iter().any(|line| line.contains("E_TOOL_NOT_IN_CATALOG")), "{transcript:?}");
}

#[both_linkages]
async fn a_search_without_results_keeps_the_selection_and_names_the_groups() {
    let mut chat = chat(json!({ "minQueryLength": 3, "maxResults": 1 })).await;
    let found = search(&mut chat, json!({ "query": "file", "limit": 5 })).await;
    assert_eq!(names(&found), ["files__read"]);
    let nothing = search(&mut chat, json!({ "query": "weather" })).await;
    assert_eq!(nothing["results"], json!([]));
    assert_eq!(nothing["selectedTools"], json!(["files__read"]));
    assert_eq!(nothing["groups"], json!({ "files": 2, "mail": 2, "office": 1, "skills": 1 }));
    assert_eq!(offered(&chat).await, ["skills__list", SEARCH, "files__read"]);
    let refused = chat.call(SEARCH, json!({ "query": "so" })).await.unwrap();
    assert!(refused.error().unwrap().message.contains("less than 3"), "{refused:?}");
}

#[both_linkages]
async fn a_small_catalog_is_never_reduced_and_some_tools_always_stay() {
    let mut small = chat(json!({ "threshold": 8 })).await;
    search(&mut small, json!({ "query": "mail" })).await;
    assert_eq!(offered(&small).await.len(), 7);
    let mut large = chat(json!({ "threshold": 7, "always": ["files__*", "mail__l?st"] })).await;
    search(&mut large, json!({ "query": "hire" })).await;
    assert_eq!(offered(&large).await, ["files__read", "mail__list", "files__list", SEARCH, "office__hire"]);
}

#[both_linkages]
async fn a_selection_that_is_not_kept_ends_with_the_turn() {
    let script = [
        ScriptItem::call(SEARCH, json!({ "query": "mail" })),
        ScriptItem::say("done"),
        ScriptItem::say("fine").repeat(),
    ];
    let chat = builder(json!({ "persistSelection": false })).script(script).start().await.unwrap();
    chat.say("go").await.unwrap();
    assert_eq!(chat.last_request().tools.len(), 4);
    assert_eq!(offered(&chat).await.len(), 7);
}

#[both_linkages]
async fn tools_that_come_later_are_found_and_those_that_go_are_skipped() {
    let odd = Odd::new();
    let config = odd.config(&[]);
    let script = [
        ScriptItem::call("odd__add", json!({ "name": "late" })),
        ScriptItem::call(SEARCH, json!({ "query": "late" })),
        ScriptItem::call("odd__late", json!({})),
        ScriptItem::call(SEARCH, json!({ "query": "odd__remove" })),
        ScriptItem::call("office__hire", json!({})),
        ScriptItem::call(SEARCH, json!({ "query": "burn" })),
        ScriptItem::say("done"),
    ];
    let settings = json!({ "always": ["odd__add", "odd__remove", "office__hire"] });
    let chat = builder(settings).agent(|agent| agent.plugin("odd", "mcp", config)).script(script);
    let chat = chat.start().await.unwrap();
    chat.say("go").await.unwrap();
    let transcript = chat.transcript().await;
    assert!(transcript.iter().any(|line| line.contains("late {}")), "{transcript:?}");
    assert!(chat.last_request().tool_names().contains(&"mail__burn"), "{:?}", chat.last_request());
    assert!(chat.last_request().tool_names().contains(&"odd__late"), "{:?}", chat.last_request());
}

#[both_linkages]
#[covers("CACHE-01")]
async fn the_oldest_half_is_closed_when_too_many_are_open() {
    let mut chat = chat(json!({ "maxOpen": 3, "always": [] })).await;
    for (query, open) in [
        ("files", vec!["files__read", "files__list"]),
        ("send", vec!["files__read", "files__list", "mail__send"]),
        ("send", vec!["files__read", "files__list", "mail__send"]),
        ("mail", vec!["mail__send", "mail__list"]),
        ("hire", vec!["mail__send", "mail__list", "office__hire"]),
    ] {
        let found = search(&mut chat, json!({ "query": query })).await;
        assert_eq!(found["selectedTools"], json!(open), "{query}");
        assert_eq!(offered(&chat).await[1..], open, "{query}");
    }
}

#[both_linkages]
async fn a_selected_tool_that_is_gone_is_skipped() {
    let odd = Odd::new();
    let config = odd.config(&[]);
    let script = [
        ScriptItem::call("odd__add", json!({ "name": "late" })),
        ScriptItem::call(SEARCH, json!({ "query": "odd" })),
        ScriptItem::call("odd__remove", json!({ "name": "late" })),
        ScriptItem::say("done"),
    ];
    let settings = json!({ "maxResults": 100 });
    let chat = builder(settings).agent(|agent| agent.plugin("odd", "mcp", config)).script(script);
    let chat = chat.start().await.unwrap();
    chat.say("go").await.unwrap();
    let requests = chat.requests();
    let has = |index: usize, name| requests[index].tool_names().contains(&name);
    assert!(has(2, "odd__late") && has(2, "odd__remove") && !has(2, "mail__send"), "{:?}", requests[2]);
    assert!(!has(3, "odd__late") && has(3, "odd__remove"), "{:?}", requests[3]);
}
