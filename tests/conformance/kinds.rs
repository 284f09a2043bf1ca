//! PIPE-13 to PIPE-15, D-31: there are three kinds of middleware and no others, and all follow the same model. That
//! others do not compile is in `tests/ui/4_middleware`.

use goondan::json;
use goondan::middleware::MiddlewareKind;
use goondan::model::ScriptItem;
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent};

/// Describes an agent with one layer of each of `kinds`, called like it, and two extensions.
fn with_layers(log: &Log, kinds: &[MiddlewareKind]) -> goondan::agent::AgentBuilder {
    let layers = |extension: &str| {
        let layers = kinds.iter().map(|kind| json!([kind, format!("{kind}-{extension}"), null]));
        json!({ "log": log, "layers": layers.collect::<Vec<_>>() })
    };
    let agent = agent([ScriptItem::call("core__run", json!({})), ScriptItem::say("done")]);
    agent.with_named("outer", "layers", layers("outer")).with_named("inner", "layers", layers("inner"))
}

/// The layers of one kind around `core`, which is what they wrap.
fn around(kind: MiddlewareKind, core: &[String]) -> Vec<String> {
    let [outer, inner] = ["outer", "inner"].map(|extension| vec![format!("{kind}-{extension}")]);
    [&*outer, &*inner, core, &*inner, &*outer].concat()
}

#[both_linkages]
#[covers("PIPE-15", "D-31")]
async fn every_kind_is_an_onion_around_its_core() {
    for kind in MiddlewareKind::ALL {
        let log = Log::new();
        let instance = with_layers(&log, &[kind]).build().unwrap().instance("test").await.unwrap();
        instance.run("hello").await.unwrap();
        let core = ["core".to_owned()];
        let expected = match kind {
            // The second step calls no tool.
            MiddlewareKind::Step => [around(kind, &core), around(kind, &[])].concat(),
            _ => around(kind, &core),
        };
        assert_eq!(log.take(), expected, "{kind}");
    }
}

#[both_linkages]
#[covers("PIPE-14", "D-31")]
async fn a_kind_does_not_disturb_the_others() {
    use MiddlewareKind::{Step, ToolCall, Turn};

    let log = Log::new();
    let instance = with_layers(&log, &MiddlewareKind::ALL).build().unwrap().instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let steps = [around(Step, &around(ToolCall, &["core".to_owned()])), around(Step, &[])].concat();
    assert_eq!(log.take(), around(Turn, &steps));
    for kind in MiddlewareKind::ALL {
        let layers = instance.layers(kind).await.unwrap();
        let names: Vec<_> = layers.iter().map(|layer| (layer.kind, layer.extension.as_str())).collect();
        assert_eq!(names, [(kind, "outer"), (kind, "inner")]);
    }
}

#[test]
#[covers("PIPE-14", "D-31")]
fn a_kind_has_one_name_and_other_names_are_no_kinds() {
    for kind in MiddlewareKind::ALL {
        assert_eq!(serde_json::from_value::<MiddlewareKind>(json!(kind.as_str())).unwrap(), kind);
    }
    for other in ["step.pre", "prompt", ""] {
        assert!(serde_json::from_value::<MiddlewareKind>(json!(other)).is_err(), "{other}");
    }
}
