//! What the settings of a model are checked for.

use goondan::json;
use goondan::model::find_provider;
use goondan::store::MemoryStore;
use goondan_bundle::{Bundle, schema};
use goondan_covers::covers;
use serde_json::Value;

use crate::support::{AGENT, bundle_of, error, model, warnings};

#[test]
#[covers("RULE-02", "SCHEMA-01")]
#[expect(clippy::too_many_lines, reason = "a table")]
fn mistakes_in_the_settings_have_a_place_and_a_remedy() {
    const SCHEMA: &str = "E_CONFIG_SCHEMA_INVALID";
    for (spec, expected) in [
        ("{ provider: echo }", "4:7 spec.prefix: `spec.prefix` is missing -> add `prefix: \"> \"`"),
        (
            "{ provider: echo, prefx: a }",
            "4:25 spec.prefx: unknown field `prefx` in `spec` of the provider `echo`: expected `key`, `limits`, `mode`, \
             `prefix`, `provider`, `record`, `tape` or `url`; did you mean `prefix`? -> write `prefix`",
        ),
        (
            "{ provider: echo, prefix: a, recrod: b }",
            "4:36 spec.recrod: unknown field `recrod` in `spec` of the provider `echo`: expected `key`, `limits`, \
             `mode`, `prefix`, `provider`, `record`, `tape` or `url`; did you mean `record`? -> write `record`",
        ),
        (
            "{ provider: echo, prefix: 5 }",
            "4:33 spec.prefix: `spec.prefix` does not fit the provider `echo`: 5 is not of type \"string\" -> put it in \
             quotes",
        ),
        (
            "{ provider: echo, prefix: [a] }",
            "4:33 spec.prefix: `spec.prefix` does not fit the provider `echo`: [\"a\"] is not of type \"string\" -> \
             change it: What every answer begins with.",
        ),
        (
            "{ provider: echo, prefix: a, limits: {} }",
            "4:44 spec.limits.idleMs: `spec.limits.idleMs` is missing -> add `idleMs: <value>`",
        ),
        (
            "{ provider: echo, prefix: a, limits: { idleMs: 1, x: 2 } }",
            "4:57 spec.limits.x: unknown field `x` in `spec.limits` of the provider `echo`: expected `idleMs` -> \
             remove `x`",
        ),
        (
            "{ provider: echo, prefix: a, tape: ../x }",
            "4:42 spec.tape: `spec.tape` must be a path below the bundle's directory, but is \"../x\" -> write a \
             relative path without `..`",
        ),
        (
            "{ provider: echo, prefix: a, record: /x }",
            "4:44 spec.record: `spec.record` must be a path below the bundle's directory, but is the text `/x` -> \
             write a relative path without `..`",
        ),
        // What the provider itself finds.
        (
            "{ provider: echo, prefix: a, url: ftp }",
            "4:41 spec.url: the model `main` has a `url` that is not http -> write http://…",
        ),
        (
            "{ provider: echo, prefix: a, limits: { idleMs: 0 } }",
            "4:54 spec.limits.idleMs: no time at all -> write a larger number",
        ),
        // A provider without settings.
        (
            "{ provider: plain, a: 1 }",
            "4:26 spec.a: unknown field `a` in `spec` of the provider `plain`: expected `provider` or \
             `record` -> remove `a`",
        ),
        // The provider itself.
        ("{ script: a }", "4:7 spec.provider: `spec.provider` is missing -> add `provider: scripted`"),
        (
            "{ provdier: echo, prefix: a }",
            "4:9 spec.provdier: unknown field `provdier` in `spec`: expected `provider` or `record`; did you mean \
             `provider`? -> write `provider`",
        ),
        (
            "{ provider: { valueFrom: { env: A } } }",
            "4:19 spec.provider: `spec.provider` must be text, but is a mapping -> write text",
        ),
    ] {
        assert_eq!(error(spec), format!("{SCHEMA} {expected}"), "{spec}");
    }
}

#[test]
fn an_unknown_provider_is_told_with_those_that_the_program_has() {
    let told = error("{ provider: ehco }");
    let (begin, end) = ("4:19 spec.provider: unknown provider `ehco`: this build knows ", "-> write `provider: echo`");
    assert!(told.starts_with(&format!("E_CONFIG_SCHEMA_INVALID {begin}")), "{told}");
    assert!(told.ends_with(&format!("; did you mean `echo`? {end}")), "{told}");
    for known in ["`echo`", "`forms`", "`scripted`"] {
        assert!(told.contains(known), "{told}");
    }
}

#[test]
fn settings_of_several_forms_are_read_beside_the_members_of_the_bundle() {
    for right in ["{ provider: forms, one: a }", "{ provider: forms, other: 1, record: ./r }"] {
        let directory = bundle_of(&(model("main", right) + AGENT));
        Bundle::check(directory.path()).unwrap_or_else(|errors| panic!("{right}: {errors}"));
    }
    let wrong = error("{ provider: forms, one: a, other: 1 }");
    assert!(
        wrong.starts_with("E_CONFIG_SCHEMA_INVALID 4:7 spec: `spec` does not fit the provider `forms`: "),
        "{wrong}"
    );
}

#[test]
fn a_provider_that_does_not_work_is_named() {
    for (spec, expected) in [
        (
            "{ provider: twin }",
            "two crates, `goondan-bundle` and `goondan-bundle`, link a provider called `twin` -> rename one of them, or \
             link only one of the crates",
        ),
        (
            "{ provider: panics, when: check }",
            "the provider `panics` of the crate goondan-bundle 0.1.0 does not work: a check panicked: at the check -> ",
        ),
        (
            "{ provider: text }",
            "the provider `text` of the crate goondan-bundle 0.1.0 does not work: the config is of the type \
             `string`, and configs are an object -> ",
        ),
        (
            "{ provider: greedy }",
            "the provider `greedy` of the crate goondan-bundle 0.1.0 does not work: its config has a member \
             `record`, which means something else -> ",
        ),
    ] {
        let error = error(spec);
        assert!(error.starts_with(&format!("E_MODEL_PROVIDER 4:19 spec.provider: {expected}")), "{error}");
    }
}

#[tokio::test]
async fn what_keeps_a_provider_from_building_has_the_place_of_the_model() {
    let directory = bundle_of(&(model("main", "{ provider: panics, when: build }") + AGENT));
    let bundle = Bundle::load(directory.path()).unwrap();
    let error = bundle.build(MemoryStore::new()).await.unwrap_err();
    assert_eq!(error.code(), "E_MODEL_PROVIDER");
    let file = directory.path().join("goondan.yaml");
    let expected = format!("{}:4:7: the model `main`: the provider `panics` of the crate", file.display());
    assert!(error.message().starts_with(&expected) && error.message().ends_with("at the build"), "{error:?}");
}

#[test]
fn hints_of_a_provider_are_warnings() {
    assert_eq!(
        warnings("{ provider: echo, prefix: a, key: literal }"),
        ["4:41 spec.key: the key is written in the bundle"]
    );
}

#[test]
fn what_is_found_at_a_value_from_the_environment_is_left_out() {
    let from = |name: &str| format!("{{ valueFrom: {{ env: {name} }} }}");
    let set = from("CARGO_PKG_NAME");
    let spec = format!("{{ provider: echo, prefix: {set}, key: {set}, url: {set}, mode: {set} }}");
    assert_eq!(warnings(&spec), [""; 0]);
    let missing = warnings(&format!("{{ provider: echo, prefix: a, key: {} }}", from("GOONDAN_ABSENT_KEY")));
    assert_eq!(missing.len(), 1);
    let expected = "4:41 spec.key: `spec.key` takes its value from the variable `GOONDAN_ABSENT_KEY`, which is not set";
    assert!(missing[0].starts_with(expected), "{missing:?}");
    // A value where no text fits is a mistake whatever it is.
    let number = error(&format!("{{ provider: echo, prefix: a, limits: {{ idleMs: {set} }} }}"));
    assert!(number.starts_with("E_CONFIG_SCHEMA_INVALID 4:54 spec.limits.idleMs: "), "{number}");
}

#[test]
fn files_that_a_provider_reads_belong_to_the_bundle() {
    let spec = "{ provider: echo, prefix: a, tape: ./script.yaml, record: ./script.yaml }";
    assert!(error(spec).contains("spec.record: `spec.record` is a file that the bundle is made of"), "{}", error(spec));
    let directory = bundle_of(&(model("main", "{ provider: echo, prefix: a, tape: ./script.yaml }") + AGENT));
    let bundle = Bundle::load(directory.path()).unwrap();
    assert_eq!(bundle.models().next().unwrap().files, [directory.path().join("script.yaml")]);
}

#[test]
#[covers("SCHEMA-01")]
fn editors_know_the_settings_of_every_provider() {
    let schema = schema(&[]);
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    assert_eq!(
        schema["$defs"]["provider:echo"]["properties"]["prefix"]["description"],
        "What every answer begins with."
    );
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let fits = |spec: Value| {
        let document =
            json!({ "apiVersion": "goondan.ai/v1", "kind": "Model", "metadata": { "name": "a" }, "spec": spec });
        validator.is_valid(&document)
    };
    let from = || json!({ "valueFrom": { "env": "NAME" } });
    for right in [
        json!({ "provider": "echo", "prefix": "a" }),
        json!({ "provider": "echo", "prefix": from(), "key": from(), "limits": { "idleMs": 1 }, "record": "./r" }),
        json!({ "provider": "plain" }),
        json!({ "provider": "forms", "one": "a", "record": "./r" }),
        json!({ "provider": "forms", "other": 1 }),
        json!({ "provider": "scripted", "script": "./a.yaml" }),
    ] {
        assert!(fits(right.clone()), "{right}");
    }
    for wrong in [
        json!({ "provider": "ehco", "prefix": "a" }),
        json!({ "prefix": "a" }),
        json!({ "provider": "echo" }),
        json!({ "provider": "echo", "prefix": 5 }),
        json!({ "provider": "echo", "prefix": "a", "script": "./a.yaml" }),
        json!({ "provider": "echo", "prefix": "a", "limits": { "idleMs": 1, "x": 1 } }),
        json!({ "provider": "echo", "prefix": "a", "tape": "../a" }),
        json!({ "provider": "plain", "a": 1 }),
        json!({ "provider": "forms", "one": "a", "x": 1 }),
        json!({ "provider": "plain", "record": from() }),
    ] {
        assert!(!fits(wrong.clone()), "{wrong}");
    }
}

#[test]
fn providers_are_found_by_their_names() {
    let echo = find_provider("echo").unwrap().unwrap();
    assert_eq!((echo.name(), echo.package()), ("echo", "goondan-bundle"));
    assert!(find_provider("nothing").unwrap().is_none());
    assert_eq!(find_provider("twin").unwrap_err().code(), "E_MODEL_PROVIDER");
}
