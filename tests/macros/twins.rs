//! Extensions of several crates in one program: one crate renames its dependency `goondan`, and two extensions have the
//! same name.

use goondan::model::ScriptedModel;
use goondan::{Agent, ErrorCode};
use serde_json::json;

use crate::support::register;

#[goondan::extension(name = "twin")]
mod twin {}

#[test]
fn renamed_dependency() {
    let twin = register::<renamed::Twin>(json!({})).unwrap();
    assert_eq!(twin.names(), ["middleware turn", "tool twin__who", "on turn.*", "cleanup"]);
    assert_eq!(twin.call("twin__who", json!({ "name": "ann" })).unwrap(), "the twin in the crate `renamed`, ann");
}

#[tokio::test]
async fn two_crates_with_the_same_name_are_a_load_error_that_names_both() {
    let agent = Agent::builder("a").model(ScriptedModel::new([])).linked_extension("twin", "twin", json!({}));
    let error = agent.build().unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_LOAD);
    assert_eq!(error.message(), "two crates, `goondan` and `renamed`, link an extension called `twin`");
    // By its type, each of the two can be added.
    let by_type = Agent::builder("a").model(ScriptedModel::new([])).extension::<renamed::Twin>(json!({}));
    assert!(by_type.build().is_ok());
}
