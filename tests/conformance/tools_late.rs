//! LATE-01: tools that are registered after `#[init]`, and tools whose parameters cannot be checked.

use conformance_extensions::tools::Toolbox;
use conformance_extensions::tools_late::Learning;
use goondan::agent::{AgentBuilder, Instance};
use goondan::conversation::Part;
use goondan::extension::Extension;
use goondan::model::ScriptItem;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::agent;

fn learn(name: &str) -> ScriptItem {
    ScriptItem::call("learning__learn", json!({ "name": name }))
}

fn call(name: &str) -> ScriptItem {
    ScriptItem::call(name, json!({}))
}

fn done() -> ScriptItem {
    ScriptItem::say("done")
}

fn with_tag(agent: AgentBuilder, tag: &str) -> AgentBuilder {
    agent.with::<Learning>(json!({ "tag": tag }))
}

/// Returns the results of all tool calls in the conversation.
async fn results(instance: &Instance) -> Vec<String> {
    let messages = instance.messages().await.unwrap();
    let parts = messages.iter().flat_map(|message| message.content().parts());
    let results = parts.filter_map(|part| match part {
        Part::ToolResult(result) => Some(result.output.to_text().into_owned()),
        _ => None,
    });
    results.collect()
}

async fn tools(instance: &Instance) -> Vec<String> {
    instance.tools().await.unwrap().iter().map(|tool| tool.name.to_string()).collect()
}

#[both_linkages]
#[covers("LATE-01", "TOOL-02")]
async fn a_tool_that_a_turn_learns_is_called_in_its_next_step_and_later() {
    let script = [learn("late__one"), call("late__one"), done(), call("late__one"), call("late__two"), done(), done()];
    let agent = with_tag(agent(script), "a").build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    assert_eq!(tools(&instance).await, ["learning__learn"]);
    instance.run("hello").await.unwrap();
    assert_eq!(results(&instance).await, ["null", "late__one by a"]);
    assert_eq!(tools(&instance).await, ["learning__learn", "late__one"]);
    instance.run("learn late__two").await.unwrap();
    assert_eq!(results(&instance).await[2..], ["late__one by a", "late__two by a"], "the second in the step itself");
    // Another conversation learns for itself.
    assert_eq!(tools(&agent.instance("other").await.unwrap()).await, ["learning__learn"]);
}

#[both_linkages]
#[covers("LATE-01", "LEGACY-RECONCILE-01")]
async fn a_late_tool_stays_through_reloads_of_others_and_goes_with_its_extension() {
    let described = |script: Vec<ScriptItem>| with_tag(agent(script), "a");
    let first = described(vec![learn("late__one"), done()]).with::<Toolbox>(json!({})).build().unwrap();
    let instance = first.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    first.reload(&described(vec![call("late__one"), done()]).build().unwrap()).await.unwrap();
    instance.run("again").await.unwrap();
    assert_eq!(results(&instance).await.last().unwrap(), "late__one by a");
    let without = agent([call("late__one"), done()]).with::<Toolbox>(json!({})).build().unwrap();
    first.reload(&without).await.unwrap();
    instance.run("and again").await.unwrap();
    assert!(results(&instance).await.last().unwrap().contains("E_TOOL_NOT_IN_CATALOG"));
    // A successor with another config begins without what its predecessor learnt.
    let next = with_tag(agent([done()]), "b").build().unwrap();
    first.reload(&next).await.unwrap();
    assert_eq!(tools(&instance).await, ["learning__learn"]);
}

#[both_linkages]
#[covers("LATE-01", "TOOL-03")]
async fn the_latest_of_two_tools_with_one_name_answers() {
    let script = [learn("box__fragile"), call("box__fragile"), done()];
    let one = with_tag(agent(script), "a").with::<Toolbox>(json!({})).build().unwrap();
    let instance = one.instance("test").await.unwrap();
    let before = tools(&instance).await;
    instance.run("hello").await.unwrap();
    assert_eq!(results(&instance).await[1], "box__fragile by a");
    assert_eq!(tools(&instance).await, before, "it keeps its place in the catalog");

    let both = [learn("late__one"), call("late__one"), done(), call("late__one"), done()];
    let two = with_tag(agent(both), "a");
    let two = two.with_named("second", Learning::DESCRIPTOR.name, json!({ "tag": "b" })).build().unwrap();
    let instance = two.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    assert_eq!(results(&instance).await[1], "late__one by b", "its `learn` replaced the other one's");
    instance.run("learn late__one").await.unwrap();
    assert_eq!(results(&instance).await[2], "late__one by b", "the inner layer registered last");
}

#[both_linkages]
#[covers("LATE-01")]
async fn a_late_schema_that_cannot_be_compiled_is_refused_where_it_is_registered() {
    let lesson = json!({ "name": "late__one", "parameters": { "type": "any" } });
    let agent = with_tag(agent([ScriptItem::call("learning__learn", lesson), done()]), "a").build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    assert!(results(&instance).await[0].contains("E_SCHEMA_INVALID"), "{:?}", results(&instance).await);
    assert_eq!(tools(&instance).await, ["learning__learn"]);
}

/// Forms that servers send. Those that no validator here takes are marked.
fn odd_schemas() -> Vec<(Value, bool)> {
    let text =
        |pattern: &str| json!({ "type": "object", "properties": { "x": { "type": "string", "pattern": pattern } } });
    let of = |x: Value| json!({ "type": "object", "properties": { "x": x } });
    vec![
        (text("[a-z"), true),
        (text("^[^]*$"), true),
        (text(r"(?<y>a)\k<y>"), true),
        (text("^(ab?c){0,100000}$"), true),
        (of(json!({ "$ref": "https://example.com/schema.json" })), true),
        (of(json!({ "$ref": "#/$defs/nowhere" })), true),
        (of(json!({ "type": "string", "required": true })), true),
        (of(json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true })), true),
        (of(json!({ "type": "any" })), true),
        (json!({ "$schema": "https://example.com/draft", "type": "object" }), true),
        (of(json!({ "type": "array", "items": [{ "type": "string" }] })), true),
        (json!({ "type": "string" }), true),
        (text("(?<=a)b"), false),
        (text(r"^\p{L}+$"), false),
        (text(r"^(a)\1$"), false),
        (text(r"^https?:\/\/"), false),
        (text("[\u{4e00}-\u{9fa5}]"), false),
        (of(json!({ "type": "string", "nullable": true })), false),
        (
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {
            "x": { "type": "array", "items": [{ "type": "string" }] } } }),
            false,
        ),
        (json!({ "type": "object", "properties": { "x": { "$ref": "#" } } }), false),
    ]
}

#[both_linkages]
#[covers("LATE-01")]
async fn a_lenient_tool_with_any_schema_opens_its_conversation_and_is_called() {
    let schemas = odd_schemas();
    let names: Vec<_> = (0..schemas.len()).map(|index| format!("odd__{index}")).collect();
    let lenient: goondan::json::Map<_, _> = names.iter().cloned().zip(schemas.iter().map(|(s, _)| s.clone())).collect();
    let script = names.iter().map(|name| call(name)).chain([done()]);
    let agent = agent(script).max_steps_per_turn(100.try_into().unwrap());
    let agent = agent.with::<Learning>(json!({ "tag": "a", "lenient": lenient })).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let expected: Vec<_> = names.iter().map(|name| format!("{name} by a")).collect();
    assert_eq!(results(&instance).await, expected);
    let offered = instance.tools().await.unwrap();
    for (name, (schema, _)) in names.iter().zip(&schemas) {
        assert_eq!(offered.get(name).unwrap().parameters.as_ref(), Some(schema), "the model reads it as it is");
    }
}

#[both_linkages]
async fn without_leniency_such_a_schema_refuses_the_extension() {
    for (schema, odd) in odd_schemas() {
        let lesson = json!({ "name": "late__one", "parameters": schema });
        let script = [ScriptItem::call("learning__learn", lesson), done()];
        let agent = with_tag(agent(script), "a").build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        instance.run("hello").await.unwrap();
        let result = &results(&instance).await[0];
        assert_eq!(result.contains("E_SCHEMA_INVALID"), odd, "{schema}: {result}");
    }
}
