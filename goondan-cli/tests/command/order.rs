//! `goondan order`, and its output in its manual.

use serde_json::Value;

use crate::support::{checkout, goondan, printed};

fn order(arguments: &[&str]) -> String {
    printed(goondan().arg("order").args(arguments).current_dir(checkout()))
}

#[test]
fn the_manual_shows_what_the_command_prints() {
    let page = order(&["examples/quickstart"]);
    let manual = std::fs::read_to_string(checkout().join("docs/operating.md")).unwrap();
    assert!(manual.contains(&page), "docs/operating.md must show:\n{page}");
}

#[test]
fn json_has_a_list_for_each_kind() {
    let object: Value = serde_json::from_str(&order(&["examples/quickstart", "--json"])).unwrap();
    assert_eq!(object["turn"][0]["extension"], "logging");
    assert_eq!(object["turn"][1]["function"], "trim");
    assert!(object["turn"][1]["why"].as_str().unwrap().contains("-1000"), "{object}");
    assert!(object["toolCall"].is_array());
}
