//! What the tools of a server are called, how they are called, and what they answer.

use std::fs;

use goondan::conversation::{Part, ToolOutput};
use goondan::tool::Effect;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use super::support::{Odd, call, chat, logs, refused, tools};

#[both_linkages]
#[covers("PATTERN-MCP-01", "PATTERN-MCP-02", "PATTERN-MCP-03", "PATTERN-MCP-04", "PATTERN-MCP-05")]
async fn the_tools_of_a_server_are_called_and_it_ends_with_the_conversation() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    assert_eq!(tools(&chat).await[..2], ["odd__echo", "odd__pid"]);
    let echo = chat.instance().tools().await.unwrap().get("odd__echo").unwrap().clone();
    assert_eq!(echo.description.as_deref(), Some("Returns a text."));
    assert_eq!(echo.parameters.unwrap()["required"], json!(["text"]));
    assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
    assert_eq!(odd.running().len(), 1);
    chat.close().await.unwrap();
    assert_eq!((odd.starts(), odd.running()), (1, vec![]));
    assert_eq!(odd.log().last().unwrap(), "end of input", "it was not killed");
}

#[both_linkages]
async fn an_answer_may_be_an_error_json_or_a_file() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    let (code, message) = refused(&mut chat, "fail", json!({})).await;
    assert_eq!((code.as_str(), message.as_str()), ("E_TOOL_FAILED", "it went wrong"));
    let (code, message) = refused(&mut chat, "refuse", json!({})).await;
    assert_eq!((code.as_str(), message.as_str()), ("E_MCP_REFUSED", "not today"));
    assert_eq!(call(&mut chat, "data", json!({})).await, r#"{"answer":42}"#);
    let image = chat.call("odd__image", json!({})).await.unwrap().to_reply().unwrap();
    let ToolOutput::Content(parts) = image.output() else { panic!("{image:?}") };
    let [Part::Text(text), Part::File(file)] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!((text.text.as_str(), file.url.as_str()), ("a dot", "data:image/png;base64,iVBORw0KGgo="));
}

#[both_linkages]
async fn a_long_answer_is_cut_and_the_whole_of_it_is_in_a_file() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    let short = call(&mut chat, "long", json!({ "length": 30_000 })).await;
    assert_eq!(short.len(), 30_000);
    let long = call(&mut chat, "long", json!({ "length": 100_000 })).await;
    let (head, note) = long.split_once('\n').unwrap();
    assert_eq!(head.len(), 30_000);
    let (path, _) = note.split_once(" is in the file ").unwrap().1.split_once(": ").unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "x".repeat(100_000));
}

#[both_linkages]
#[covers("PATTERN-MCP-03")]
async fn tools_with_illegal_or_equal_names_get_legal_ones_that_differ() {
    let odd = Odd::new();
    let any = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let option = odd.tools(&json!([any("a.b"), any("a_b"), any("_"), any("a.b")]));
    let mut chat = chat(odd.config(&[&option])).await;
    let all = tools(&chat).await;
    assert_eq!(all[all.len() - 3..], ["odd__a_b", "odd__a_b-2", "odd__tool"]);
    for (tool, name) in [("a_b", "a.b"), ("a_b-2", "a_b"), ("tool", "_")] {
        assert_eq!(call(&mut chat, tool, json!({})).await, format!("{name} {{}}"));
    }
    let warnings = logs(&chat);
    assert!(warnings.iter().any(|line| line.contains("the tool `a_b` is called `odd__a_b-2`")), "{warnings:?}");
    assert!(warnings.iter().any(|line| line.contains("two tools `a.b`")), "{warnings:?}");
}

/// Schemas that servers send, of which many cannot be compiled.
fn odd_schemas() -> Vec<Value> {
    let of = |x: Value| json!({ "type": "object", "properties": { "x": x } });
    let text = |pattern: &str| of(json!({ "type": "string", "pattern": pattern }));
    vec![
        text("[a-z"),
        text("^[^]*$"),
        text(r"(?<y>a)\k<y>"),
        text("^(ab?c){0,100000}$"),
        of(json!({ "$ref": "https://example.com/schema.json" })),
        of(json!({ "$ref": "#/$defs/nowhere" })),
        of(json!({ "type": "string", "required": true })),
        of(json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true })),
        of(json!({ "type": "any" })),
        json!({ "$schema": "https://example.com/draft", "type": "object" }),
        of(json!({ "type": "array", "items": [{ "type": "string" }] })),
        json!({ "type": "string" }),
        json!({}),
        text("(?<=a)b"),
        text(r"^\p{L}+$"),
        text(r"^(a)\1$"),
        text(r"^https?:\/\/"),
        text("[\u{4e00}-\u{9fa5}]"),
        of(json!({ "type": "string", "nullable": true })),
        of(json!({ "$ref": "#" })),
    ]
}

#[both_linkages]
async fn a_bad_schema_is_the_problem_of_its_tool_alone() {
    let odd = Odd::new();
    let schemas = odd_schemas();
    let tool = |(index, schema)| json!({ "name": format!("odd{index}"), "inputSchema": schema });
    let mut offered: Vec<_> = schemas.iter().enumerate().map(tool).collect();
    offered.push(json!({ "name": "none" }));
    offered.push(json!({ "name": "text", "inputSchema": "anything" }));
    let option = odd.tools(&offered.into());
    let mut chat = chat(odd.config(&[&option])).await;
    let offered = chat.instance().tools().await.unwrap();
    for index in 0..schemas.len() {
        let name = format!("odd{index}");
        assert_eq!(offered.get(&format!("odd__{name}")).unwrap().parameters.as_ref().unwrap()["type"], "object");
        assert_eq!(call(&mut chat, &name, json!({})).await, format!("{name} {{}}"));
    }
    let warnings = logs(&chat);
    for name in ["`none`", "`text`"] {
        assert!(warnings.iter().any(|line| line.contains(name)), "{warnings:?}");
    }
}

#[both_linkages]
async fn effects_come_from_the_config_and_from_the_server_only_if_it_is_trusted() {
    let odd = Odd::new();
    let effects = |settings| {
        let config = odd.config_with(&[], json!({ "tools": settings }));
        async {
            let chat = chat(config).await;
            let tools = chat.instance().tools().await.unwrap();
            ["pid", "env", "echo"].map(|name| tools.get(&format!("odd__{name}")).map(|tool| tool.effect))
        }
    };
    let [read, idempotent, once] = [Effect::Read, Effect::Idempotent, Effect::Once].map(Some);
    assert_eq!(effects(json!({})).await, [once, once, once]);
    assert_eq!(effects(json!({ "trustHints": true })).await, [read, once, once]);
    let patterns = json!({ "trustHints": true, "effects": { "*": "read", "p*": "once", "ec*": "idempotent" } });
    assert_eq!(effects(patterns).await, [once, read, idempotent]);
    let some = json!({ "allow": ["e*", "pid"], "deny": ["*nv"] });
    assert_eq!(effects(some).await, [once, None, once]);
}

#[both_linkages]
async fn nothing_is_declared_that_the_extension_cannot_do() {
    let odd = Odd::new();
    let _chat = chat(odd.config(&[])).await;
    assert_eq!(odd.logged("capabilities"), [r#"{"elicitation":{"form":{},"url":{}}}"#]);
}
