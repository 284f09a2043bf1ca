//! The catalog of a step as layers see it, which a library does not read again while it is the same.

use conformance_extensions::catalogs::{Provided, Recasting, Seeing};
use goondan::json;
use goondan::model::ScriptItem;
use goondan_covers::both_linkages;

use crate::linkage::Extended;
use crate::support::{Log, agent};

#[both_linkages]
async fn a_layer_sees_the_catalog_of_its_step_whatever_it_made_of_the_one_before() {
    let log = Log::new();
    let go = || ScriptItem::call("seeing__go", json!({}));
    let agent = agent([go(), go(), go(), go(), ScriptItem::say("done")]);
    let agent = agent.with::<Recasting>(json!({})).with::<Seeing>(log.config()).build().unwrap();
    agent.instance("test").await.unwrap().run("hello").await.unwrap();
    let all = "seeing__go goes, seeing__stay stays; seeing__go mine";
    assert_eq!(
        log.take(),
        [
            all,
            "seeing__go goes, seeing__stay stays, recasting__more ; seeing__go mine",
            all,
            "seeing__go changed, seeing__stay stays; seeing__go mine",
            all,
        ]
    );
}

#[both_linkages]
async fn a_tool_is_one_of_a_provider_for_the_layers_further_in_and_the_model() {
    let log = Log::new();
    let run = || ScriptItem::call("provided__run", json!({}));
    let agent = agent([run(), run(), ScriptItem::say("done")]).with::<Provided>(log.config()).build().unwrap();
    agent.instance("test").await.unwrap().run("hello").await.unwrap();
    let bash = r#"[{"api":"anthropic","type":"bash_1","name":"bash"}]"#;
    let shell = r#"[{"api":"openai","type":"shell","name":"shell","members":{"environment":{"type":"local"}}}]"#;
    assert_eq!(log.take(), [bash, shell, "[]"]);
}
