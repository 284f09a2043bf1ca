//! Servers, and errors in them.

use goondan_covers::covers;

use crate::fixture::{AGENT, MODEL, assert_error, load};

const DIGEST: &str = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";

fn server(spec: &str) -> String {
    format!("apiVersion: goondan.ai/v1\nkind: Server\nmetadata: {{ name: http }}\nspec: {{ {spec} }}\n")
}

#[test]
#[covers("SERVE-03")]
fn a_server_is_read() {
    let principals = format!(
        "principals: [ {{ name: ada, tokenSha256: {DIGEST}, agents: [ Agent/main ], instances: \"*\", may: [ read ] }} ]"
    );
    let rest = "listen: \"0.0.0.0:80\", agents: [ Agent/main ], limits: { turns: 2, perPrincipal: 1, bodyBytes: 10 }, ui: { onDisconnect: cancel }";
    let bundle = load(&[&server(&format!("{principals}, {rest}")), MODEL, AGENT]).unwrap();
    assert!(bundle.warnings().is_empty(), "{:?}", bundle.warnings());
    let server = bundle.server().unwrap();
    assert_eq!(server.listen, Some("0.0.0.0:80".parse().unwrap()));
    assert_eq!(server.agents.as_ref().unwrap()[0], "main");
    let principal = &server.principals[0];
    assert_eq!((principal.name.as_str(), principal.token_sha256.as_str()), ("ada", DIGEST));
    assert_eq!((principal.instances.as_deref(), principal.may.as_deref()), (Some("*"), Some(&["read".to_owned()][..])));
    let limits = [server.turns, server.turns_per_principal, server.body_bytes].map(|limit| limit.unwrap().get());
    assert_eq!((limits, server.cancels_on_disconnect), ([2, 1, 10], true));
    let plain = load(&[&self::server(""), MODEL, AGENT]).unwrap();
    assert!(plain.server().unwrap().principals.is_empty());
    assert!(load(&[MODEL, AGENT]).unwrap().server().is_none());
}

#[test]
#[covers("SERVE-03")]
fn mistakes_in_a_server_have_a_place_and_a_remedy() {
    let principal = |fields: &str| format!("principals: [ {{ {fields} }} ]");
    let named = |fields: &str| principal(&format!("name: ada, tokenSha256: {DIGEST}, {fields}"));
    for (spec, place, words) in [
        ("listen: here".to_owned(), "4:17", &["`spec.listen` must be an IP address and a port"][..]),
        ("agents: [ Agent/mine ]".to_owned(), "4:19", &["no Agent `mine`", "`main`"]),
        ("port: 80".to_owned(), "4:9", &["unknown field `port`"]),
        ("limits: { turns: 0 }".to_owned(), "4:26", &["a whole number from 1"]),
        ("ui: { onDisconnect: stop }".to_owned(), "4:29", &["`continue` or `cancel`"]),
        (principal("name: ada"), "4:23", &["`spec.principals[0].tokenSha256` is missing"]),
        (principal("name: ada, tokenSha256: secret"), "4:49", &["64 lower-case hexadecimal digits"]),
        (principal(&format!("name: a b, tokenSha256: {DIGEST}")), "4:31", &["letters, digits"]),
        (named("may: [ everything ]"), "4:122", &["`turn`, `read`, `decide` or `delete`"]),
        (named("instances: \"a*b\""), "4:126", &["a key, or the beginning of keys and `*`"]),
    ] {
        let code = if spec.contains("mine") { "E_CONFIG_REF_NOT_FOUND" } else { "E_CONFIG_SCHEMA_INVALID" };
        assert_error(&[&server(&spec), MODEL, AGENT], code, place, words);
    }
    let twice =
        format!("principals: [ {{ name: ada, tokenSha256: {DIGEST} }}, {{ name: bob, tokenSha256: {DIGEST} }} ]");
    assert_error(&[&server(&twice), MODEL, AGENT], "E_CONFIG_SCHEMA_INVALID", "4:125", &["the token of `bob`"]);
    let two = server("").replace("name: http", "name: other");
    assert_error(&[&server(""), MODEL, AGENT, &two], "E_CONFIG_SCHEMA_INVALID", "19:19", &["one at most"]);
}

#[test]
#[covers("SERVE-03")]
fn a_server_that_other_machines_reach_names_its_principals() {
    let bundle = load(&[&server("listen: \"[::]:7717\""), MODEL, AGENT]).unwrap();
    let [warning] = bundle.warnings() else { panic!("{:?}", bundle.warnings()) };
    assert!(warning.message.contains("other machines reach [::]:7717"), "{warning}");
    assert!(warning.suggestion.contains("`principals`"), "{warning}");
    let own = load(&[&server("listen: \"127.0.0.1:7717\""), MODEL, AGENT]).unwrap();
    assert!(own.warnings().is_empty());
}
