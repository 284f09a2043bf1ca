//! Files of plain data.

use std::fs;

use goondan_bundle::read_yaml;

#[derive(Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    say: String,
}

#[test]
fn plain_data_has_the_limits_and_the_errors_of_a_bundle() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script.yaml");
    let read = |content: &str| {
        fs::write(&file, content).unwrap();
        read_yaml::<Vec<Item>>(&file)
    };
    assert_eq!(read("- say: hello\n").unwrap(), [Item { say: "hello".to_owned() }]);
    for (content, code, words) in [
        ("- say: a\n- sya: b\n", "E_CONFIG_SCHEMA_INVALID", ":2:3: unknown field `sya`"),
        ("- say: [a]\n", "E_CONFIG_SCHEMA_INVALID", ":1:8: "),
        ("say: a\n", "E_CONFIG_SCHEMA_INVALID", ":1:1: "),
        ("- {}\n", "E_CONFIG_SCHEMA_INVALID", ":1:3: missing field `say`"),
        ("- say: a\n---\n- say: b\n", "E_CONFIG_PARSE_ERROR", ":3:1: "),
        ("", "E_CONFIG_PARSE_ERROR", "the file is empty"),
        ("- say: \"a\n", "E_CONFIG_PARSE_ERROR", ":2:1: "),
    ] {
        let error = read(content).unwrap_err();
        assert_eq!(error.code(), code, "{content}: {error:?}");
        assert!(error.message().starts_with(&file.display().to_string()), "{error:?}");
        assert!(error.message().contains(words), "{content}: {error:?}");
    }
    let deep = format!("- say: {}", "[".repeat(10_000));
    assert!(read(&deep).unwrap_err().message().contains("nested more than 64 levels"));
    assert_eq!(read_yaml::<Item>(directory.path().join("no")).unwrap_err().code(), "E_CONFIG_PARSE_ERROR");
}
