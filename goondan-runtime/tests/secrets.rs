//! How long secrets are masked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io;
use std::panic::catch_unwind;

use goondan_core::secret::mask;
use goondan_core::{Content, Error, FilePart, Part, Secret};
use goondan_runtime::{Agent, ScriptedModel};

fn is_masked(text: &str) -> bool {
    mask(text) == "***"
}

#[test]
fn of_100_000_secrets_that_replace_one_another_none_is_left() {
    let text = |number: u32| format!("rotated-{number}-times");
    let mut current = Secret::new(text(0));
    for number in 1..100_000 {
        current = Secret::new(text(number));
        assert!(!is_masked(&text(number - 1)));
    }
    assert!(is_masked(&text(99_999)) && is_masked(current.expose()));
    drop(current);
    assert!((0..100_000).all(|number| !is_masked(&text(number))));
}

#[test]
fn a_clone_and_another_secret_with_the_same_text_keep_it_masked() {
    let one = Secret::new("kept-by-a-clone");
    let clone = one.clone();
    let two = Secret::new("kept-by-a-clone");
    for secret in [one, clone, two] {
        assert!(is_masked("kept-by-a-clone"));
        drop(secret);
    }
    assert!(!is_masked("kept-by-a-clone"));
}

#[test]
fn an_error_keeps_the_secrets_of_its_causes_masked() {
    let text = "key-in-a-cause";
    let cause = || io::Error::other(io::Error::other(format!("refused: {text}")));
    let secret = Secret::new(text);
    let errors: [Error; 2] = [cause().into(), Error::msg("no").caused_by(cause())];
    drop(secret);
    for error in &errors {
        let report = error.report().to_string();
        assert!(report.contains("refused: ***") && !report.contains(text), "{report}");
    }
    drop(errors);
    assert!(!is_masked(text));
}

#[test]
fn a_panic_that_drops_a_secret_keeps_it_masked() {
    let panic = catch_unwind(|| {
        let secret = Secret::new("key-in-a-panic");
        panic!("refused: {}", secret.expose());
    });
    let message = panic.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(mask(&message), "refused: ***");
}

#[test]
fn an_agent_keeps_secrets_masked() {
    let agent = Agent::builder("assistant").model(ScriptedModel::new([]));
    let agent = agent.keep_secrets([Secret::new("key-of-an-agent")]).build().unwrap();
    assert!(is_masked("key-of-an-agent"));
    drop(agent);
    assert!(!is_masked("key-of-an-agent"));
}

#[test]
fn secrets_in_a_link_and_in_the_name_of_a_file_are_masked_and_its_content_is_kept() {
    let secret = Secret::new("aGVsbG8gd29ybGQ");
    let file = |url: &str| FilePart::new("text/plain", url).named(format!("{}.txt", secret.expose())).into();
    let link = file("https://example.org/?key=aGVsbG8gd29ybGQ");
    let data = file("data:text/plain;base64,aGVsbG8gd29ybGQ=");
    let content = Content::from(vec![link, data]);
    let masked = content.masked();
    let urls = masked.parts().iter().map(|part| match part {
        Part::File(file) => (file.url.as_str(), file.name.as_deref()),
        part => panic!("{part:?}"),
    });
    let urls: Vec<_> = urls.collect();
    let (link, data) = ("https://example.org/?key=***", "data:text/plain;base64,aGVsbG8gd29ybGQ=");
    assert_eq!(urls, [(link, Some("***.txt")), (data, Some("***.txt"))]);
}
