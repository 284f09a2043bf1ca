//! Bundles without errors, and questions about them.

use std::fs;
use std::num::NonZeroU32;
use std::time::Duration;

use goondan_bundle::{Bundle, Entry};
use goondan_covers::covers;
use serde_json::json;

use crate::fixture::{AGENT, EXTENSION, MODEL, bundle_of, load};

#[test]
#[covers("LOAD-05", "LOAD-06")]
fn good_bundle_is_read_into_typed_values() {
    let directory = bundle_of(&[
        EXTENSION,
        MODEL,
        "\
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec:
  model: \"Model/main\"
  system: You are brief.
  extensions:
    - { ref: \"Extension/message-window\", config: { limit: 3, nested: { c: 3 } }, onError: abort }
  policy: { toolTimeoutMs: 120000 }
",
        "apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: { name: other }\nspec: { model: { kind: Model, name: main }, policy: { maxStepsPerTurn: 5 } }\n",
        "kindless: documents are ignored\n",
        "\
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: team }
spec:
  agents: [ { ref: Agent/main }, { ref: Agent/other } ]
  entryAgent: Agent/main
  policy: { maxStepsPerTurn: 9 }
",
    ]);
    let bundle = Bundle::load(directory.path()).unwrap();

    assert_eq!(bundle.root(), directory.path());
    assert_eq!(bundle.agents().map(|agent| agent.name.as_str()).collect::<Vec<_>>(), ["main", "other"]);
    let main = bundle.entry_agent().unwrap();
    assert_eq!(main.name, "main");
    assert_eq!(main.system.as_deref(), Some("You are brief."));
    let model = bundle.model_of(main);
    assert_eq!((model.provider.as_str(), &model.config), ("scripted", &json!({ "script": "./script.yaml" })));
    assert_eq!((&model.files, &model.record), (&vec![directory.path().join("script.yaml")], &None));

    let used: Vec<_> = bundle.extensions_of(main).collect();
    assert_eq!(used.len(), 1);
    assert_eq!(used[0].0, "message-window");
    assert_eq!(used[0].1, &Entry::Linked("message-window".to_owned()));
    assert_eq!(
        used[0].2,
        json!({ "maxMessages": 40, "limit": 3, "nested": { "c": 3 } }),
        "config is merged key by key"
    );

    assert_eq!(bundle.policy_of(main).max_steps_per_turn, NonZeroU32::new(9), "the swarm's limit");
    assert_eq!(
        bundle.policy_of(bundle.agent("other").unwrap()).max_steps_per_turn,
        NonZeroU32::new(5),
        "the agent's own limit"
    );
    assert_eq!(bundle.policy_of(main).tool_timeout, Some(Duration::from_secs(120)));
    assert_eq!(bundle.workspace_name().unwrap(), "team");
}

#[test]
fn without_a_swarm_the_only_agent_is_the_entry() {
    let bundle = load(&[MODEL, AGENT]).unwrap();
    assert_eq!(bundle.workspace_name().unwrap(), "main");
    assert_eq!(bundle.policy_of(bundle.entry_agent().unwrap()).max_steps_per_turn, None);
    assert_eq!(bundle.extensions().len(), 0);
}

#[test]
fn without_a_swarm_several_agents_leave_the_entry_open() {
    let bundle = load(&[MODEL, AGENT, &AGENT.replace("name: main", "name: other")]).unwrap();
    let error = bundle.entry_agent().unwrap_err();
    assert!(error.message().contains("`main` or `other`"), "{error:?}");
    assert_eq!(bundle.workspace_name().unwrap_err().code(), "E_CONFIG_SCHEMA_INVALID");

    let error = bundle.agent("mian").unwrap_err();
    assert_eq!(error.code(), "E_CONFIG_REF_NOT_FOUND");
    assert!(error.message().contains("did you mean `main`?"), "{error:?}");
}

#[test]
fn instance_key_names_the_workspace() {
    let swarm = "apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: { name: team }\nspec: { instanceKey: My Desk, agents: [ { ref: Agent/main } ], entryAgent: Agent/main }\n";
    assert_eq!(load(&[swarm, MODEL, AGENT]).unwrap().workspace_name().unwrap(), "My Desk");
}

#[test]
fn bundle_can_be_a_file_whose_directory_is_the_root() {
    let directory = bundle_of(&[MODEL, AGENT]);
    let file = directory.path().join("other.yml");
    fs::rename(directory.path().join("goondan.yaml"), &file).unwrap();
    let bundle = Bundle::load(&file).unwrap();
    assert_eq!(bundle.files().collect::<Vec<_>>(), [&file]);
    assert_eq!(bundle.root(), directory.path());

    fs::rename(&file, directory.path().join("goondan.yml")).unwrap();
    assert!(Bundle::load(directory.path()).is_ok());
}

#[test]
fn record_is_a_path_below_the_bundle_that_need_not_exist() {
    let directory = bundle_of(&[&MODEL.replace("script.yaml", "script.yaml, record: ./requests.jsonl"), AGENT]);
    let bundle = Bundle::load(directory.path()).unwrap();
    assert_eq!(bundle.models().next().unwrap().record.as_deref(), Some(&*directory.path().join("requests.jsonl")));
}

#[test]
fn anchors_and_merges_are_read() {
    let agent = "apiVersion: goondan.ai/v1\nkind: Agent\nmetadata: { name: &name main }\nspec: { model: { kind: Model, <<: { name: *name } } }\n";
    assert_eq!(load(&[agent, MODEL]).unwrap().entry_agent().unwrap().model.name, "main");
}

#[test]
fn examples_of_the_documentation_are_a_bundle() {
    let documentation = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/bundles.md")).unwrap();
    let examples: Vec<_> =
        documentation.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let bundle = load(&examples).unwrap();
    assert_eq!((examples.len(), bundle.warnings().len()), (5, 0), "{:?}", bundle.warnings());
}
