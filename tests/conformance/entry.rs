//! ENTRY, LOAD, ERR: how extensions are initialized, and when they are refused.

use conformance_extensions::entry::{Configured, Declining, Failing, Late, Quick, Slow};
use goondan::model::ScriptItem;
use goondan::prelude::*;
use goondan::{ErrorCode, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent};

#[both_linkages]
#[covers("ENTRY-01", "ENTRY-02", "ENTRY-03", "ENTRY-04", "LOAD-01", "LOAD-02", "LOAD-08", "API-04", "ENTRY-05")]
async fn extensions_register_one_after_another_in_their_order() {
    let log = Log::new();
    let agent = agent([ScriptItem::say("hi")]).with::<Slow>(log.config()).with::<Quick>(log.config());
    let instance = agent.build().unwrap().instance("test").await.unwrap();
    assert_eq!(log.take(), ["slow starts", "slow ends", "quick"]);
    assert_eq!(instance.run("hello").await.unwrap().text(), "slow was there");
}

#[both_linkages]
#[covers("ENTRY-08")]
async fn every_instance_registers_for_itself_and_once() {
    let log = Log::new();
    let agent = agent([]).with::<Quick>(log.config()).build().unwrap();
    let one = agent.instance("one").await.unwrap();
    let _two = agent.instance("two").await.unwrap();
    let again = agent.instance("one").await.unwrap();
    assert_eq!(one.key(), again.key());
    assert_eq!(log.take(), ["quick", "quick"]);
}

#[both_linkages]
#[covers("ENTRY-06", "ERR-01", "ERR-03", "ERR-07")]
async fn a_failing_init_stops_the_start_and_later_extensions_are_not_called() {
    let log = Log::new();
    let agent = agent([]).with::<Failing>(json!({})).with::<Quick>(log.config()).build().unwrap();
    let error = agent.instance("test").await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_INIT, "failing"));
    assert!(format!("{error:?}").contains("invalid digit found in string"), "{error:?}");
    assert!(error.help_url().unwrap().ends_with("/goondan/errors/index.html#e_ext_init"));
    assert!(log.take().is_empty());
}

#[both_linkages]
#[covers("ERR-04", "LOAD-08")]
async fn a_config_that_does_not_fit_is_refused_with_every_place() {
    let build = |config| agent([]).with::<Configured>(config).build();
    assert!(build(json!({ "maxItems": 3, "names": ["a"] })).is_ok());
    let error = build(json!({ "maxItems": 300, "names": ["a", 1], "other": true })).unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_CONFIG, "configured"));
    for part in ["/maxItems: 300", "/names/1: 1", "other"] {
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(build(json!({})).unwrap_err().code(), &ErrorCode::EXT_CONFIG);
}

#[both_linkages]
#[covers("ERR-02", "ERR-06")]
async fn an_extension_that_is_not_linked_is_refused_with_the_line_to_add() {
    let error = agent([]).linked_extension("weather", "my-weather", json!({})).build().unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_LOAD);
    assert!(error.suggestion().unwrap().contains("use my_weather as _;"), "{error:?}");
    assert!(error.suggestion().unwrap().contains("configured"), "the linked ones are listed: {error:?}");
    has_a_remedy_and_a_page(&error, "e_ext_load");
}

#[both_linkages]
async fn one_extension_may_be_used_twice_under_two_names_but_not_under_one() {
    let log = Log::new();
    let twice = |name| agent([]).with::<Quick>(log.config()).with_named(name, "quick", log.config()).build();
    assert!(twice("quick-2").is_ok());
    assert_eq!(twice("quick").unwrap_err().code(), &ErrorCode::CONFIG_DUPLICATE_NAME);
    assert_eq!(twice("Quick").unwrap_err().code(), &ErrorCode::EXT_NAME);
}

static FOREIGN: goondan::extension::ExtensionDescriptor = {
    let mut foreign = goondan::extension::ExtensionDescriptor::new("foreign", &|| json!({}), &|_, _| {
        Box::pin(async { Err(Error::msg("code of a foreign extension must not run")) })
    });
    foreign.api_version = "goondan.ai/v2";
    foreign
};

struct Foreign;

impl goondan::extension::Extension for Foreign {
    const DESCRIPTOR: &'static goondan::extension::ExtensionDescriptor = &FOREIGN;
}

#[both_linkages]
#[covers("ERR-05", "ERR-06")]
async fn another_version_of_the_contract_is_refused_before_any_code_runs() {
    let error = agent([]).extension::<Foreign>(json!({})).build().unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_COMPAT);
    assert!(error.message().contains("goondan.ai/v2") && error.message().contains("goondan.ai/v1"), "{error}");
    has_a_remedy_and_a_page(&error, "e_ext_compat");
}

#[both_linkages]
async fn registration_ends_with_the_start() {
    let agent = agent([ScriptItem::say("hi")]).with::<Late>(json!({}));
    let error = crate::support::one_turn(agent).await.unwrap_err();
    assert_eq!(error.message(), "registration is over");
}

#[both_linkages]
#[covers("ERR-06")]
async fn a_failing_init_shows_the_code_and_the_remedy_of_its_cause() {
    for (refuse, code, remedy) in [("error", "NO_DB", "start the database"), ("toolName", "E_TOOL_NAME", "__")] {
        let agent = agent([]).with::<Declining>(json!({ "refuse": refuse })).build().unwrap();
        let error = agent.instance("test").await.unwrap_err();
        assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_INIT, "declining"));
        assert!(error.suggestion().unwrap().contains(remedy), "{error:?}");
        let report = error.report().to_string();
        assert!(report.contains(&format!("caused by: {code}: ")), "{report}");
        assert_eq!(report.matches("help: ").count(), 1, "{report}");
    }
}

/// Checks that an error says what to do, and where more is written.
fn has_a_remedy_and_a_page(error: &Error, anchor: &str) {
    let page = error.help_url().unwrap();
    assert!(page.ends_with(&format!("/goondan/errors/index.html#{anchor}")), "{page}");
    let report = error.report().to_string();
    assert!(report.contains(error.suggestion().unwrap()) && report.contains(&page), "{report}");
}

#[both_linkages]
#[covers("ERR-06")]
async fn errors_of_extensions_have_a_remedy_and_a_page() {
    let config = agent([]).with::<Configured>(json!({})).build().unwrap_err();
    has_a_remedy_and_a_page(&config, "e_ext_config");
    let declining = agent([]).with::<Declining>(json!({ "refuse": "error" })).build().unwrap();
    has_a_remedy_and_a_page(&declining.instance("test").await.unwrap_err(), "e_ext_init");
}

#[both_linkages]
async fn a_tool_whose_input_no_object_can_fit_is_refused_when_it_is_registered() {
    let agent = agent([]).with::<Declining>(json!({ "refuse": "schema" })).build().unwrap();
    let error = agent.instance("test").await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::SCHEMA_INVALID, "declining"));
    assert!(error.message().contains("`declining__echo` is of the type `string`"), "{error:?}");
}

#[both_linkages]
async fn an_unknown_or_wrong_member_of_a_config_is_named_with_the_nearest_known_one() {
    let build = |config| agent([]).with::<Configured>(config).build().unwrap_err();
    let error = build(json!({ "maxItems": 3, "naems": ["a"] }));
    assert!(error.message().contains("/naems: unknown member: "), "{error}");
    assert!(error.message().contains("did you mean `names`?"), "{error}");
    let none = agent([]).with::<Failing>(json!({ "any": 1 })).build().unwrap_err();
    assert!(none.message().contains("/any: unknown member: there are none"), "{none}");
    assert!(build(json!({ "maxItems": "many" })).message().contains(r#"/maxItems: "many" is not"#));
}
