//! All errors of a bundle at once, and the forms of the report.

use goondan_bundle::{Bundle, KnownExtension};
use goondan_covers::covers;
use serde_json::json;

use crate::fixture::{AGENT, EXTENSION, MODEL, code, directory_of};

const SCRIPT: (&str, &str) = ("script.yaml", "- say: hello\n");

#[test]
#[covers("RULE-02", "SCHEMA-01")]
fn every_error_is_reported_with_its_place() {
    let two_errors = "\
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec:
  modle: Model/main
  policy: { maxStepsPerTurn: 0 }
";
    let dangling = AGENT.replace("name: main", "name: other").replace("Model/main", "Model/mian");
    let directory = directory_of(&[
        SCRIPT,
        ("goondan.yaml", &[two_errors, &dangling].join("---\n")),
        ("model.yaml", &MODEL.replace("scripted", "magic")),
        ("window.yaml", &EXTENSION.replace("entry", "etnry")),
    ]);
    let errors = Bundle::check(directory.path()).unwrap_err();
    let reported: Vec<_> = errors
        .iter()
        .map(|error| {
            let file = error.file.strip_prefix(directory.path()).unwrap().display();
            format!("{file}:{} {} {}", error.place.unwrap(), error.path, code(error))
        })
        .collect();
    assert_eq!(
        reported,
        [
            "goondan.yaml:5:3 spec.modle E_CONFIG_SCHEMA_INVALID",
            "goondan.yaml:6:30 spec.policy.maxStepsPerTurn E_CONFIG_SCHEMA_INVALID",
            "goondan.yaml:12:10 spec.model E_CONFIG_REF_NOT_FOUND",
            "model.yaml:4:19 spec.provider E_CONFIG_SCHEMA_INVALID",
            "window.yaml:5:3 spec.etnry E_CONFIG_SCHEMA_INVALID",
        ]
    );
    assert_eq!(errors.len(), 5);
    assert!(errors.iter().all(|error| !error.message.is_empty() && !error.suggestion.is_empty()));
}

#[test]
#[covers("RULE-02")]
fn errors_of_all_checks_are_reported_together() {
    let agent =
        AGENT.replace("  model: Model/main\n", "  model: Model/mian\n  extensions: [ { ref: Extension/window } ]\n");
    let directory = directory_of(&[
        SCRIPT,
        // Two errors in one document.
        ("goondan.yaml", &MODEL.replace("script:", "scrpt:").replace("kind: Model", "kind: Model\nnote: x")),
        // One in each of two others, and a reference to a resource that does not exist.
        ("agents/a.yaml", &agent.replace("spec:", "spec:\n  system: 5")),
        ("agents/b.yaml", &AGENT.replace("name: main", "name: Other")),
        // A config that does not fit.
        ("window.yaml", &EXTENSION.replace("name: message-window", "name: window")),
    ]);
    let config_schema = json!({ "properties": { "maxMessages": { "maximum": 9 } } });
    let known = [KnownExtension::new("message-window", config_schema)];
    let errors = Bundle::check_with(directory.path(), &known).unwrap_err();
    let reported: Vec<_> = errors.iter().map(|error| (error.place.unwrap().to_string(), code(error))).collect();
    assert_eq!(
        reported,
        [
            ("3:1".to_owned(), "E_CONFIG_SCHEMA_INVALID"),
            ("5:29".to_owned(), "E_CONFIG_SCHEMA_INVALID"),
            ("6:26".to_owned(), "E_EXT_CONFIG"),
            ("5:11".to_owned(), "E_CONFIG_SCHEMA_INVALID"),
            ("6:10".to_owned(), "E_CONFIG_REF_NOT_FOUND"),
            ("3:19".to_owned(), "E_CONFIG_INVALID_NAME"),
        ],
        "{errors}"
    );
}

#[test]
#[covers("FAIL-01")]
fn the_failures_of_an_extension_that_guards_are_not_skipped() {
    let uses = |on_error| format!("{AGENT}  extensions: [ {{ ref: Extension/message-window{on_error} }} ]\n");
    let check = |agent: &str, guard| {
        let mut known = KnownExtension::new("message-window", json!({}));
        known.guard = guard;
        let directory =
            directory_of(&[SCRIPT, ("model.yaml", MODEL), ("window.yaml", EXTENSION), ("goondan.yaml", agent)]);
        Bundle::check_with(directory.path(), &[known])
    };
    let skip = uses(", onError: skip");
    assert!(
        check(&skip, false).is_ok() && check(&uses(""), true).is_ok() && check(&uses(", onError: abort"), true).is_ok()
    );
    let errors = check(&skip, true).unwrap_err();
    let [error] = errors.iter().collect::<Vec<_>>()[..] else { panic!("{errors}") };
    assert_eq!((code(error), error.path.as_str()), ("E_EXT_GUARD", "spec.extensions[0].onError"));
    assert_eq!(error.place.unwrap().to_string(), "6:59");
    assert!(error.message.contains("`message-window`") && error.suggestion.contains("`onError: abort`"), "{error}");
}

#[test]
fn errors_are_displayed_a_line_each_with_the_remedy_below() {
    let directory = directory_of(&[SCRIPT, ("goondan.yaml", &AGENT.replace("  model", "  \"a\\nb\": 1\n  model"))]);
    let errors = Bundle::check(directory.path()).unwrap_err();
    let file = directory.path().join("goondan.yaml").display().to_string();
    let (unknown, dangling) = (
        "unknown field `a b` in `spec`: expected `model`, `models`, `system`, `extensions`, `policy` or `answer`",
        "the bundle has no Model `main`; it has no Model at all",
    );
    assert_eq!(
        errors.to_string(),
        format!(
            "{file}:5:3: error[E_CONFIG_SCHEMA_INVALID]: {unknown}\n    help: remove `a b`\n\
             {file}:6:10: error[E_CONFIG_REF_NOT_FOUND]: {dangling}\n    \
             help: add a document with `kind: Model` and the name `main`"
        )
    );
}

#[test]
fn errors_are_serialized_as_json() {
    let directory = directory_of(&[SCRIPT, ("goondan.yaml", AGENT)]);
    let errors = Bundle::check(directory.path()).unwrap_err();
    let reported = serde_json::to_value(&errors).unwrap();
    let expected = json!([{
        "code": "E_CONFIG_REF_NOT_FOUND",
        "message": "the bundle has no Model `main`; it has no Model at all",
        "path": "spec.model",
        "file": directory.path().join("goondan.yaml"),
        "line": 5,
        "column": 10,
        "suggestion": "add a document with `kind: Model` and the name `main`",
        "helpUrl": errors.first().code.as_ref().unwrap().help_url(),
    }]);
    assert_eq!(reported, expected);

    let missing = Bundle::check(directory.path().join("nowhere")).unwrap_err();
    let reported = serde_json::to_value(missing.first()).unwrap();
    assert_eq!((&reported["line"], &reported["path"]), (&json!(null), &json!("")));
}

#[test]
fn error_of_loading_says_how_many_more_errors_there_are() {
    let directory =
        directory_of(&[SCRIPT, ("goondan.yaml", &AGENT.replace("  model: Model/main", "  modle: x\n  policy: 5"))]);
    let error = Bundle::load(directory.path()).unwrap_err();
    let suggestion = error.suggestion().unwrap();
    assert!(suggestion.starts_with("write `model`; "), "{suggestion}");
    assert!(suggestion.contains("1 more fault, which"), "{suggestion}");
}

#[test]
#[covers("RULE-02")]
fn errors_in_the_script_of_a_model_have_their_places_in_the_script() {
    for (script, place, words) in
        [("- say: a\n- sya: b\n", "2:3", "unknown field `sya`"), ("- say: [a\n", "1:8", "unclosed bracket")]
    {
        let other = MODEL.replace("name: main", "name: other");
        let directory =
            directory_of(&[("script.yaml", script), ("goondan.yaml", &[MODEL, AGENT, &other].join("---\n"))]);
        let errors = Bundle::check(directory.path()).unwrap_err();
        assert_eq!(errors.len(), 1, "two models, one script: {errors}");
        assert_eq!(errors.first().file, directory.path().join("script.yaml"));
        assert_eq!(errors.first().place.unwrap().to_string(), place, "{errors}");
        assert!(errors.first().message.contains(words), "{errors}");
    }
}
