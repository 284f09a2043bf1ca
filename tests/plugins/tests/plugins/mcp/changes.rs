//! What happens when a server changes what it offers.

use goondan::json;
use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::tool::ToolSource;
use goondan_covers::{both_linkages, covers};

use super::support::{Odd, call, chat, chat_with, refused, tools};

fn add(name: &str) -> ScriptItem {
    ScriptItem::call("odd__add", json!({ "name": name }))
}

fn remove(name: &str) -> ScriptItem {
    ScriptItem::call("odd__remove", json!({ "name": name }))
}

fn use_tool(name: &str) -> ScriptItem {
    ScriptItem::call(format!("odd__{name}"), json!({}))
}

/// Returns the results of the tool calls, from the transcript.
async fn results(chat: &Chat) -> Vec<String> {
    let lines = chat.transcript().await.into_iter();
    lines.filter_map(|line| line.strip_prefix("tool: ").map(str::to_owned)).collect()
}

#[both_linkages]
#[covers("LATE-01", "PATTERN-MCP-01")]
async fn a_tool_that_the_server_adds_is_called_in_the_next_step_of_the_turn() {
    let odd = Odd::new();
    let script = [add("new"), use_tool("new"), remove("new"), use_tool("new"), add("new"), use_tool("new")];
    let chat = chat_with(odd.config(&[]), script.into_iter().chain([ScriptItem::say("done")])).await;
    chat.say("go").await.unwrap();
    let results = results(&chat).await;
    assert!(results[1].contains("new {}"), "{results:?}");
    assert!(results[3].contains("E_TOOL_NOT_IN_CATALOG"), "{results:?}");
    assert!(results[5].contains("new {}"), "{results:?}");
    let changes: Vec<_> = chat.events("mcp.toolsChanged").iter().map(|event| event.args()[0].clone()).collect();
    let change = |added: &[&str], removed: &[&str]| json!({ "added": added, "removed": removed, "changed": [] });
    let added = change(&["odd__new"], &[]);
    assert_eq!(changes, [added.clone(), change(&[], &["odd__new"]), added]);
}

/// The answer of the call comes right after the announcement.
#[both_linkages]
#[covers("LATE-01")]
async fn an_announcement_is_not_overtaken_by_the_answer_after_it() {
    let odd = Odd::new();
    let names: Vec<_> = (0..20).map(|index| format!("new{index}")).collect();
    let script = names.iter().flat_map(|name| [add(name), use_tool(name), ScriptItem::say("done")]);
    let chat = chat_with(odd.config(&[]), script).await;
    for _ in &names {
        chat.say("go").await.unwrap();
    }
    let results = results(&chat).await;
    let called: Vec<_> =
        names.iter().zip(results.chunks(2)).filter(|(name, results)| results[1].contains(*name)).collect();
    let refused = results.iter().filter(|result| result.contains("E_TOOL")).count();
    assert_eq!((called.len(), refused), (names.len(), 0), "{results:?}");
}

#[both_linkages]
#[covers("LATE-01")]
async fn a_schema_that_the_server_changes_counts_from_the_next_step() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    let before = tools(&chat).await;
    assert_eq!(call(&mut chat, "change", json!({ "name": "pid" })).await, "changed");
    let (_, message) = refused(&mut chat, "pid", json!({})).await;
    assert!(message.contains('n'), "{message}");
    assert_eq!(call(&mut chat, "pid", json!({ "n": 1 })).await, odd.logged("start")[0]);
    assert_eq!(tools(&chat).await, before, "it keeps its place");
}

#[both_linkages]
#[covers("PATTERN-MCP-10")]
async fn each_kind_of_offering_has_a_switch() {
    let odd = Odd::new();
    let all = |tools, resources, prompts| {
        odd.config_with(&[], json!({ "expose": { "tools": tools, "resources": resources, "prompts": prompts } }))
    };
    let none = chat(all(false, false, false)).await;
    assert_eq!(tools(&none).await, [""; 0]);
    none.say("hello").await.unwrap();
    assert!(!none.last_request().transcript().iter().any(|line| line.contains("odd://")));
    none.close().await.unwrap();

    let mut chat = chat(all(false, true, true)).await;
    let extra = ["list_resources", "read_resource", "list_prompts", "get_prompt"].map(|name| format!("odd__{name}"));
    assert_eq!(tools(&chat).await, extra);
    let listed = call(&mut chat, "list_resources", json!({})).await;
    let about = r"The first\n- odd://two";
    let expected = format!(r#"[{{"uri":"odd://one","name":"One","description":"{about}","mimeType":"text/plain"}}]"#);
    assert_eq!(listed, expected);
    let read = call(&mut chat, "read_resource", json!({ "uri": "odd://one" })).await;
    assert_eq!(read, "odd://one:\nthe text of \"odd://one\"");
    assert!(call(&mut chat, "list_prompts", json!({})).await.contains("greet"));
    let prompt = call(&mut chat, "get_prompt", json!({ "name": "greet", "arguments": { "who": "Ada" } })).await;
    assert_eq!(prompt, "user:\nGreet \"Ada\".");
}

#[both_linkages]
#[covers("PATTERN-MCP-10")]
async fn the_resources_are_one_message_that_changes_only_with_them() {
    let odd = Odd::new();
    let config = odd.config_with(&[], json!({ "expose": { "resources": true } }));
    let script = [ScriptItem::say("hi"), ScriptItem::say("hi"), add("two"), ScriptItem::say("done")];
    let chat = chat_with(config, script).await;
    let shown = |chat: &Chat| {
        let lines = chat.last_request().transcript();
        lines.into_iter().filter(|line| line.contains("odd://")).collect::<Vec<_>>()
    };
    chat.say("one").await.unwrap();
    let first = shown(&chat);
    assert_eq!(first.len(), 1);
    assert!(first[0].contains("- odd://one (One, text/plain): The first - odd://two"), "{first:?}");
    let before = chat.messages().await;
    chat.say("two").await.unwrap();
    assert_eq!(shown(&chat), first);
    assert_eq!(chat.messages().await[..before.len()], before, "the same messages");
    chat.say("three").await.unwrap();
    let second = shown(&chat);
    assert!(second.len() == 1 && second[0].contains("odd://two"), "{second:?}");
}

#[both_linkages]
#[covers("LEGACY-TOOLDEF-02")]
async fn a_tool_says_which_server_it_is_from() {
    let odd = Odd::new();
    let chat = chat_with(odd.config(&[]), [add("new"), ScriptItem::say("done")]).await;
    chat.say("go").await.unwrap();
    let tools = chat.instance().tools().await.unwrap();
    let new = tools.iter().find(|tool| tool.name == "odd__new").unwrap();
    let (extension_name, server_name) = ("odd".to_owned(), Some("odd".to_owned()));
    assert_eq!(new.source, Some(ToolSource::Mcp { name: "new".to_owned(), extension_name, server_name }));
}
