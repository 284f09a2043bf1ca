//! What a person finds after a commit is what git itself would have made.

use std::fs;

use changesets::Review;
use goondan::json;
use goondan_covers::{both_linkages, covers};

use crate::changesets::{Open, Repository};

#[both_linkages]
#[covers("TREE-01")]
async fn line_ends_are_converted_for_the_person_alone() {
    let repository = Repository::new();
    repository.git(&["config", "core.autocrlf", "true"]);
    repository.write("stored.txt", "with returns\r\n");
    repository.write(".gitattributes", "*.bat text eol=crlf\nstored.txt -text\n");
    repository.write("run.bat", "a\r\n");
    repository.commit();
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    let read = |path: &str| fs::read_to_string(open.path(path)).unwrap();
    assert_eq!((read("stored.txt"), read("run.bat")), ("with returns\r\n".to_owned(), "a\n".to_owned()));
    open.write("notes.txt", "a\nd\n");
    open.write("run.bat", "a\nb\n");
    let diff = Review::all(open.path("").parent().unwrap()).unwrap()[0].diff().await.unwrap();
    assert!(!diff.contains('\r') && !diff.contains("stored.txt"), "{diff}");
    assert_eq!(open.commit(&mut chat).await["status"], "ok");
    assert_eq!((repository.read("notes.txt"), repository.read("run.bat")), ("a\r\nd\r\n".into(), "a\r\nb\r\n".into()));
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    assert_eq!(repository.git(&["cat-file", "blob", "HEAD:notes.txt"]), "a\nd");
}

#[both_linkages]
async fn ignored_files_of_the_person_are_not_overwritten() {
    let repository = Repository::new();
    repository.write(".gitignore", "mine\n");
    repository.commit();
    repository.write("mine", "mine\n");
    let mut chat = repository.chat(json!({})).await;
    let open = Open::new(&mut chat).await;
    open.write(".gitignore", "\n");
    open.write("mine", "theirs\n");
    let answer = open.commit(&mut chat).await;
    assert_eq!(answer["status"], "failed", "{answer}");
    assert_eq!(repository.read("mine"), "mine\n");
}
