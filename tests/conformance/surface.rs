//! API and LOG: the members of an extension's handle.

use conformance_extensions::surface::{Needy, Surfaces};
use goondan::extension::LogLevel;
use goondan::testing::Chat;
use goondan::{ErrorCode, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::agent;

#[both_linkages]
#[covers("API-01", "ENTRY-07", "LOG-01", "LOG-02", "TEST-01")]
async fn all_five_members_work_from_init_on_and_log_lines_carry_their_context() {
    let chat = Chat::builder().agent(|agent| agent.with::<Surfaces>(json!({}))).start().await.unwrap();
    let turn = chat.say("hello").await.unwrap();
    let logs = chat.logs();
    let line = |what: &str| logs.iter().find(|line| line.text == what).unwrap_or_else(|| panic!("{what} in {logs:?}"));
    assert_eq!(line("ready").fields["answer"], 42);
    for (level, what) in [
        (LogLevel::Debug, "to debug"),
        (LogLevel::Info, "to inform"),
        (LogLevel::Warn, "to warn"),
        (LogLevel::Error, "to complain"),
    ] {
        let line = line(what);
        assert_eq!((line.level, line.extension.as_deref()), (level, Some("surfaces")));
        assert_eq!((&line.fields["list"], &line.fields["name"]), (&json!([1, 2]), &json!("x")));
        assert_eq!((&line.context["agent"], &line.context["step"]), (&json!("assistant"), &json!(0)));
        assert_eq!(line.context["turn"], turn.turn_id().as_str());
        assert!(line.context.contains_key("instance"), "{line:?}");
    }
    assert_eq!(chat.events("surfaces.ready").len(), 1);
}

#[both_linkages]
#[covers("COMPAT-02", "COMPAT-03")]
async fn a_missing_capability_stops_the_start_and_is_named() {
    let error = agent([]).with::<Needy>(json!({})).build().unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_COMPAT, "needy"));
    assert!(error.message().contains("quantum-link") && !error.message().contains("`state`"), "{error}");
    assert!(agent([]).capability("quantum-link").with::<Needy>(json!({})).build().is_ok());
}
