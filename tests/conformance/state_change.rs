//! STATE: what a change of state may do, and which values it may have.

use conformance_extensions::state_change::{NotFinite, nesting};
use goondan::json;
use goondan::middleware::ToolCallStatus;
use goondan::testing::Chat;
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;

#[both_linkages]
async fn a_change_reads_the_old_state_and_refuses_changes_inside_of_it() {
    let chat = Chat::builder().agent(|agent| agent.with::<nesting::Extension>(json!({})));
    let mut chat = chat.start().await.unwrap();
    let failed = chat.call("nesting__panics", json!({})).await.unwrap();
    assert_eq!(failed.status(), ToolCallStatus::Error);
    let refused = "E_EXT_STATE the state of `nesting` is being changed by this thread already";
    for tool in ["nesting__later", "nesting__blocking"] {
        let result = chat.call(tool, json!({})).await.unwrap();
        let expected = json!(["inside: Some(1)", "beside: Some(1)", refused, refused, "after: Some(2)"]);
        assert_eq!(result.output(), Some(&expected), "{tool}: {:?}", result.error());
    }
}

#[both_linkages]
#[covers("STATE-08")]
async fn a_number_that_json_does_not_have_leaves_the_old_state() {
    let chat = Chat::builder().agent(|agent| agent.with::<NotFinite>(json!({})));
    let mut chat = chat.start().await.unwrap();
    let result = chat.call("not-finite__store", json!({})).await.unwrap();
    assert_eq!(result.status(), ToolCallStatus::Ok, "{:?}", result.error());
    let states = chat.instance().states().await.unwrap();
    let fine = json!([
        { "name": "roof", "celsius": null }, { "Tuple": [1, f64::MAX] }, null, "c", [98, 121, 116, 101, 115], u64::MAX
    ]);
    assert_eq!(states.into_values().collect::<Vec<_>>(), [fine]);
    let result = chat.call("not-finite__answer", json!({})).await.unwrap();
    assert_eq!(result.output(), Some(&json!([1.5, null])));
}
