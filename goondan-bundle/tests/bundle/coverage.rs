//! GUARD-01: extensions of the swarm, and which agents guards cover.

use goondan_bundle::{Bundle, Diagnostics, KnownExtension};
use goondan_core::{MiddlewareDescriptor, MiddlewareKind};
use goondan_covers::covers;
use goondan_runtime::Covers;
use serde_json::json;

use crate::fixture::{MODEL, bundle_of, code};

/// Returns the extensions of the program: one that guards, one that asks agents, and another one.
fn known() -> Vec<KnownExtension<'static>> {
    let known = |name| KnownExtension::new(name, json!({}));
    let (mut guard, mut agents, mut outer) = (known("guard"), known("agents"), known("outer"));
    guard.guard = true;
    guard.middlewares = const { &[MiddlewareDescriptor::new(MiddlewareKind::ToolCall, "look")] };
    outer.middlewares = const { &[MiddlewareDescriptor::new(MiddlewareKind::ToolCall, "push").before(&["guard"])] };
    agents.requires = &["agents"];
    vec![guard, agents, outer, known("other")]
}

fn extension(name: &str) -> String {
    format!(
        "apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: {{ name: {name} }}\nspec: {{ entry: linked:{name} }}\n"
    )
}

fn agent(name: &str, extensions: &str) -> String {
    format!(
        "apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: {{ name: {name} }}\n\
         spec:\n  model: Model/main\n  extensions: [ {extensions} ]\n"
    )
}

fn swarm(agents: &[&str], extensions: &str) -> String {
    let agents: Vec<_> = agents.iter().map(|name| format!("{{ ref: Agent/{name} }}")).collect();
    format!(
        "apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: {{ name: team }}\nspec:\n  agents: [ {} ]\n  \
         entryAgent: Agent/boss\n  extensions: [ {extensions} ]\n",
        agents.join(", ")
    )
}

const GUARD: &str = "{ ref: Extension/guard }";
const AGENTS: &str = "{ ref: Extension/agents }";
const OTHER: &str = "{ ref: Extension/other }";

fn check(documents: &[String]) -> Result<Bundle, Diagnostics> {
    let mut all = vec![MODEL.to_owned()];
    all.extend(["guard", "agents", "outer", "other"].map(extension));
    all.extend(documents.iter().cloned());
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    Bundle::check_with(bundle_of(&all).path(), &known())
}

/// Returns the errors: the code, the message, and the suggestion of each.
fn errors(documents: &[String]) -> Vec<(String, String, String)> {
    let errors = check(documents).unwrap_err();
    errors.iter().map(|error| (code(error).to_owned(), error.message.clone(), error.suggestion.clone())).collect()
}

fn warnings(documents: &[String]) -> Vec<String> {
    let bundle = check(documents).unwrap();
    let about_guards = bundle.warnings().iter().filter(|warning| warning.message.contains("guard `"));
    about_guards.map(|warning| warning.message.clone()).collect()
}

#[test]
#[covers("GUARD-01")]
fn all_agents_of_a_swarm_have_its_extensions_before_their_own() {
    let uses = format!("{GUARD}, {OTHER}");
    let documents = [agent("boss", AGENTS), agent("worker", ""), agent("alone", ""), swarm(&["boss", "worker"], &uses)];
    let alone = &documents[..2];
    assert_eq!(warnings(&[alone, &[swarm(&["boss", "worker"], &uses)]].concat()), Vec::<String>::new());
    let errors = errors(&documents);
    let [(code, message, suggestion)] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(code, "E_GUARD_GAP");
    assert_eq!(
        message,
        "the guard `guard` of the swarm does not cover `alone`, which does not have it with the same settings: \
         boss -> alone"
    );
    assert!(suggestion.contains("`{ ref: \"Agent/alone\" }` to the `agents` of the swarm"), "{suggestion}");

    let bundle = check(&[alone, &[swarm(&["boss", "worker"], &uses)]].concat()).unwrap();
    let names = |agent: &str| {
        let agent = bundle.agent(agent).unwrap();
        bundle.extensions_of(agent).map(|(name, ..)| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names("boss"), ["guard", "other", "agents"]);
    assert_eq!(names("worker"), ["guard", "other"]);
    assert!(bundle.entry_agent().unwrap().extensions.iter().take(2).all(|used| used.covers == Covers::Swarm));
    let graph = serde_json::to_value(bundle.coverage()).unwrap();
    let guards = json!([{ "extension": "guard", "covers": "swarm" }]);
    assert_eq!(
        graph,
        json!({ "agents": [
            { "agent": "boss", "asks": ["worker"], "guards": guards },
            { "agent": "worker", "asks": [], "guards": guards },
        ] })
    );
}

#[test]
#[covers("GUARD-01")]
fn an_extension_of_the_swarm_is_in_no_other_list() {
    let documents = [agent("boss", GUARD), swarm(&["boss"], GUARD)];
    let errors = errors(&documents);
    let [(code, message, _)] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(code, "E_CONFIG_SCHEMA_INVALID");
    assert_eq!(message, "the swarm has the extension `guard` for all of its agents");
    let errors = self::errors(&[agent("boss", ""), swarm(&["boss"], "{ ref: Extension/guard, covers: reachable }")]);
    assert!(errors[0].1.contains("unknown field `covers`"), "{errors:?}");
    let errors = self::errors(&[agent("boss", ""), swarm(&["boss"], "{ ref: Extension/guard, onError: skip }")]);
    assert_eq!(errors[0].0, "E_EXT_GUARD");
}

#[test]
#[covers("GUARD-01")]
fn the_way_around_a_guard_is_shown() {
    let reachable = "{ ref: Extension/guard, covers: reachable }";
    let documents = |worker: &str| {
        [
            agent("boss", &format!("{reachable}, {AGENTS}")),
            agent("clerk", &format!("{GUARD}, {AGENTS}")),
            agent("worker", worker),
            swarm(&["boss", "clerk", "worker"], ""),
        ]
    };
    let errors = errors(&documents(OTHER));
    let [(code, message, suggestion)] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(code, "E_GUARD_GAP");
    assert!(
        message.ends_with("cover `worker`, which does not have it with the same settings: boss -> worker"),
        "{message}"
    );
    assert!(suggestion.contains("`{ ref: \"Extension/guard\" }` to the `extensions` of `worker`"), "{suggestion}");

    let weaker = self::errors(&documents("{ ref: Extension/guard, config: { lax: true } }"));
    assert_eq!(weaker[0].0, "E_GUARD_GAP");
    // The clerk has one of its own.
    assert_eq!(warnings(&documents(GUARD)), Vec::<String>::new());
    // Without agents that ask there is no way.
    let alone = [agent("boss", reachable), agent("worker", ""), swarm(&["boss", "worker"], "")];
    assert!(check(&alone).is_ok());

    let errors = self::errors(&[agent("boss", "{ ref: Extension/other, covers: reachable }")]);
    assert_eq!(errors[0].0, "E_EXT_GUARD");
    let errors = self::errors(&[agent("boss", "{ ref: Extension/guard, covers: all }")]);
    assert!(errors[0].1.contains("`agent` or `reachable`"), "{errors:?}");
}

#[test]
#[covers("GUARD-01")]
fn a_guard_of_one_agent_that_lets_others_work_is_a_warning() {
    let documents = [
        agent("boss", &format!("{GUARD}, {AGENTS}")),
        agent("worker", OTHER),
        agent("clerk", GUARD),
        swarm(&["boss", "worker", "clerk"], ""),
    ];
    let expected = "the guard `guard` of `boss` does not guard what others do for it: they do not have it with the same \
                    settings: boss -> worker";
    assert_eq!(warnings(&documents), [expected]);
}

#[test]
#[covers("GUARD-01", "ORDER-11")]
fn no_layer_is_outside_of_a_guard_of_the_swarm() {
    let outer = "{ ref: Extension/outer }";
    let errors = errors(&[agent("boss", outer), swarm(&["boss"], GUARD)]);
    let [(code, message, _)] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(code, "E_EXT_ORDER");
    assert!(message.contains("`guard` guards the swarm"), "{message}");
    // In the list of the agent, the guard is inside.
    check(&[agent("boss", &format!("{outer}, {GUARD}")), swarm(&["boss"], "")]).unwrap();
    // A swarm without extensions hides no mistake.
    let alone = "apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: { name: team }\n\
                 spec: { agents: [ { ref: Agent/boss } ], entryAgent: Agent/boss }\n";
    let errors = self::errors(&[agent("boss", outer), alone.to_owned()]);
    assert!(errors[0].1.contains("`before = \"guard\"` names no extension"), "{errors:?}");
}
