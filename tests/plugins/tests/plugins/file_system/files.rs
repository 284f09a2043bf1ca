//! What the tools do with the files that they may use.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use goondan::testing::Chat;
use goondan::tool::Effect;
use goondan::{Value, json};
use goondan_covers::both_linkages;
use tempfile::TempDir;

use crate::call::{call, effects, open, refused};
use crate::linkage::WithPlugin;

/// Opens a conversation with the tools for a directory.
async fn in_directory() -> (TempDir, Chat) {
    let directory = TempDir::new().unwrap();
    let chat = open("file-system", json!({ "roots": [directory.path()] })).await;
    (directory, chat)
}

async fn tool(chat: &mut Chat, name: &str, arguments: Value) -> Value {
    call(chat, &format!("file-system__{name}"), arguments).await
}

async fn error(chat: &mut Chat, name: &str, arguments: Value) -> (String, String) {
    refused(chat, &format!("file-system__{name}"), arguments).await
}

#[both_linkages]
async fn files_are_written_listed_read_and_deleted_in_the_working_directory() {
    let mut chat = open("file-system", json!({})).await;
    let expected = [
        ("read", Effect::Read),
        ("write", Effect::Once),
        ("edit", Effect::Once),
        ("list", Effect::Read),
        ("stat", Effect::Read),
        ("mkdir", Effect::Idempotent),
        ("delete", Effect::Idempotent),
    ];
    assert_eq!(effects(&chat).await, expected.map(|(name, effect)| (format!("file-system__{name}"), effect)));
    let made = tool(&mut chat, "mkdir", json!({ "path": "logs" })).await;
    let logs = made["path"].as_str().unwrap().to_owned();
    assert!(Path::new(&logs).is_absolute() && Path::new(&logs).is_dir());
    assert_eq!(made["created"], true);
    assert_eq!(tool(&mut chat, "mkdir", json!({ "path": "logs" })).await["created"], false);
    let path = format!("{logs}/deep/a.txt");
    let written = tool(&mut chat, "write", json!({ "path": "logs/deep/a.txt", "content": "alpha" })).await;
    assert_eq!(written, json!({ "path": path, "size": 5, "written": true, "append": false }));
    let more = json!({ "path": path, "content": "\nbeta", "append": true });
    assert_eq!(tool(&mut chat, "write", more).await["size"], 10);
    let content = tool(&mut chat, "read", json!({ "path": "./logs/deep/../deep/a.txt" })).await["content"].clone();
    assert_eq!(content, "alpha\nbeta");
    let list = tool(&mut chat, "list", json!({ "path": "logs", "recursive": true })).await;
    let entries = json!([
        { "name": "deep", "path": format!("{logs}/deep"), "type": "dir" },
        { "name": "a.txt", "path": path, "type": "file", "size": 10 },
    ]);
    assert_eq!(list, json!({ "path": logs, "count": 2, "truncated": false, "entries": entries }));
    let status = tool(&mut chat, "stat", json!({ "path": path })).await;
    assert_eq!((&status["exists"], &status["type"], &status["size"]), (&json!(true), &json!("file"), &json!(10)));
    assert!(status["modified"].as_str().unwrap().starts_with("20"), "{status}");
    let deleted = tool(&mut chat, "delete", json!({ "path": path })).await;
    assert_eq!(deleted, json!({ "path": path, "type": "file" }));
    assert_eq!(tool(&mut chat, "stat", json!({ "path": path })).await, json!({ "path": path, "exists": false }));
    let (code, message) = error(&mut chat, "read", json!({ "path": path })).await;
    assert_eq!((code.as_str(), message.contains(&format!("there is no {path}"))), ("E_FILE_IO", true), "{message}");
}

#[both_linkages]
async fn a_long_file_is_read_in_parts_and_no_character_is_cut() {
    let (directory, mut chat) = in_directory().await;
    let text = "ä😀\n".repeat(30_000);
    fs::write(directory.path().join("long"), &text).unwrap();
    let (mut read, mut offset) = (String::new(), json!(0));
    loop {
        let part = tool(&mut chat, "read", json!({ "path": "long", "offset": offset })).await;
        assert_eq!((&part["size"], &part["offset"]), (&json!(text.len()), &offset));
        let content = part["content"].as_str().unwrap();
        assert!(content.len() <= 100_000);
        read.push_str(content);
        if part["truncated"] == false {
            break;
        }
        offset = part["nextOffset"].clone();
    }
    assert!(read == text);
    let part = tool(&mut chat, "read", json!({ "path": "long", "maxBytes": 5 })).await;
    assert_eq!((&part["content"], &part["nextOffset"]), (&json!("ä"), &json!(2)));
}

#[both_linkages]
async fn lines_are_read_by_their_number() {
    let (directory, mut chat) = in_directory().await;
    fs::write(directory.path().join("lines"), "one\ntwo\r\nthree\nfour").unwrap();
    for (arguments, content, next) in [
        (json!({ "lines": 1 }), "one\n", Some(4)),
        (json!({ "startLine": 2, "lines": 2 }), "two\r\nthree\n", Some(15)),
        (json!({ "startLine": 4 }), "four", None),
        (json!({ "startLine": 4, "lines": 9 }), "four", None),
        (json!({ "startLine": 9 }), "", None),
        (json!({ "offset": 4, "startLine": 2, "lines": 1 }), "three\n", Some(15)),
        (json!({ "offset": 99 }), "", None),
        (json!({ "lines": 0 }), "", Some(0)),
    ] {
        let mut arguments = arguments;
        arguments["path"] = json!("lines");
        let part = tool(&mut chat, "read", arguments.clone()).await;
        let (truncated, next) = (next.is_some(), next.map_or(Value::Null, Value::from));
        assert_eq!((&part["content"], &part["truncated"]), (&json!(content), &json!(truncated)), "{arguments}");
        assert_eq!(part.get("nextOffset").unwrap_or(&Value::Null), &next, "{arguments}");
    }
}

#[both_linkages]
async fn what_is_no_text_is_not_read() {
    let (directory, mut chat) = in_directory().await;
    for bytes in [&b"abc\xff\xfedef"[..], b"abc\xe4"] {
        fs::write(directory.path().join("image"), bytes).unwrap();
        let (code, message) = error(&mut chat, "read", json!({ "path": "image" })).await;
        assert_eq!(code, "E_FILE_NOT_TEXT");
        assert!(message.contains("image is no text: byte 3 is not UTF-8"), "{message}");
    }
    for (name, arguments) in
        [("read", json!({})), ("edit", json!({ "oldText": "a", "newText": "b" })), ("write", json!({ "content": "" }))]
    {
        let mut arguments = arguments;
        arguments["path"] = json!(".");
        let (code, message) = error(&mut chat, name, arguments).await;
        assert_eq!(code, "E_FILE_KIND", "{name}: {message}");
        assert!(message.contains("is a directory"), "{message}");
    }
}

#[both_linkages]
async fn an_edit_replaces_the_one_place_that_it_names() {
    let (directory, mut chat) = in_directory().await;
    let file = directory.path().join("code.rs");
    fs::write(&file, "fn a() {\n    1\n}\nfn b() {\n    1\n}\n").unwrap();
    let edit = |old: &str, new: &str| json!({ "path": "code.rs", "oldText": old, "newText": new });
    let edited = tool(&mut chat, "edit", edit("fn b() {\n    1", "fn b() {\n    2")).await;
    let path = file.canonicalize().unwrap();
    assert_eq!(edited, json!({ "path": path, "replacements": 1, "line": 4 }));
    assert_eq!(fs::read_to_string(&file).unwrap(), "fn a() {\n    1\n}\nfn b() {\n    2\n}\n");
    for (old, problem, hint) in [
        ("fn ", "`oldText` occurs 2 times", "it is on the lines 1, 4"),
        ("fn c", "`oldText` does not occur", "read the file, and copy"),
        ("fn a() {\n  1\n}", "`oldText` does not occur", "with other white space"),
    ] {
        let (code, message) = error(&mut chat, "edit", edit(old, "x")).await;
        assert_eq!(code, "E_FILE_NO_MATCH");
        assert!(message.contains(problem) && message.contains(hint), "{message}");
    }
    let all = json!({ "path": "code.rs", "oldText": "fn ", "newText": "", "replaceAll": true });
    assert_eq!(tool(&mut chat, "edit", all).await["replacements"], 2);
    assert_eq!(fs::read_to_string(&file).unwrap(), "a() {\n    1\n}\nb() {\n    2\n}\n");
}

#[both_linkages]
async fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions_and_links() {
    let (directory, mut chat) = in_directory().await;
    let file = directory.path().join("script");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o750)).unwrap();
    let inode = fs::metadata(&file).unwrap().ino();
    fs::create_dir(directory.path().join("sub")).unwrap();
    symlink("../script", directory.path().join("sub/link")).unwrap();
    tool(&mut chat, "write", json!({ "path": "sub/link", "content": "new" })).await;
    let after = fs::metadata(&file).unwrap();
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), after.mode() & 0o777), ("new", 0o750));
    assert_ne!(after.ino(), inode, "it is another file, which took the name");
    assert!(directory.path().join("sub/link").is_symlink());
    tool(&mut chat, "edit", json!({ "path": "sub/link", "oldText": "new", "newText": "newer" })).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "newer");
    let names =
        fs::read_dir(directory.path()).unwrap().count() + fs::read_dir(directory.path().join("sub")).unwrap().count();
    assert_eq!(names, 3, "nothing is left");
    symlink("nowhere", directory.path().join("dangling")).unwrap();
    let (_, message) = error(&mut chat, "write", json!({ "path": "dangling", "content": "" })).await;
    assert!(message.contains("leads to nothing"), "{message}");
}

#[both_linkages]
async fn lists_are_ordered_chosen_and_cut() {
    let (directory, mut chat) = in_directory().await;
    for name in ["b", "a"] {
        fs::create_dir(directory.path().join(name)).unwrap();
        fs::write(directory.path().join(name).join("file"), name).unwrap();
    }
    symlink("a", directory.path().join("link")).unwrap();
    let mut names = async |arguments: Value| {
        let list = tool(&mut chat, "list", arguments).await;
        let entries = list["entries"].as_array().unwrap().clone();
        assert_eq!(list["count"], entries.len());
        let name = |entry: &Value| format!("{} {}", entry["type"].as_str().unwrap(), entry["name"].as_str().unwrap());
        (entries.iter().map(name).collect::<Vec<_>>(), list["truncated"].as_bool().unwrap())
    };
    assert_eq!(names(json!({})).await.0, ["dir a", "dir b", "link link"]);
    let all = names(json!({ "recursive": true })).await.0;
    assert_eq!(all, ["dir a", "dir b", "link link", "file file", "file file"]);
    let files = names(json!({ "recursive": true, "includeDirs": false })).await.0;
    assert_eq!(files, ["link link", "file file", "file file"]);
    assert_eq!(names(json!({ "includeFiles": false })).await.0, ["dir a", "dir b"]);
    for number in 0..1001 {
        fs::write(directory.path().join(format!("a/{number:04}")), "").unwrap();
    }
    let (many, truncated) = names(json!({ "path": "a" })).await;
    assert_eq!((many.len(), truncated, many[999].as_str()), (1000, true, "file 0999"));
}

#[both_linkages]
async fn a_directory_is_deleted_with_what_is_in_it_only_if_asked_and_a_root_never() {
    let (directory, mut chat) = in_directory().await;
    fs::create_dir_all(directory.path().join("a/b")).unwrap();
    fs::write(directory.path().join("a/b/file"), "").unwrap();
    let (code, _) = error(&mut chat, "delete", json!({ "path": "a" })).await;
    assert_eq!(code, "E_FILE_IO");
    for root in [".", "", "a/..", "a/b/../..", directory.path().to_str().unwrap()] {
        let (_, message) = error(&mut chat, "delete", json!({ "path": root, "recursive": true })).await;
        assert!(message.contains("a root is not deleted"), "{message}");
    }
    assert!(directory.path().join("a/b/file").exists());
    assert_eq!(tool(&mut chat, "delete", json!({ "path": "a", "recursive": true })).await["type"], "dir");
    assert!(!directory.path().join("a").exists());
    let (_, message) = error(&mut chat, "mkdir", json!({ "path": "x/y", "recursive": false })).await;
    assert!(message.contains("there is no"), "{message}");
}

#[both_linkages]
async fn several_roots_are_used_by_absolute_paths() {
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut chat = open("file-system", json!({ "roots": [one.path(), two.path()] })).await;
    tool(&mut chat, "write", json!({ "path": "a", "content": "1" })).await;
    tool(&mut chat, "write", json!({ "path": two.path().join("a"), "content": "2" })).await;
    assert_eq!(fs::read_to_string(one.path().join("a")).unwrap(), "1");
    assert_eq!(fs::read_to_string(two.path().join("a")).unwrap(), "2");
    let missing = json!({ "roots": [one.path().join("missing")] });
    let chat = Chat::builder().agent(|agent| agent.plugin("file-system", "file-system", missing)).start().await;
    let report = chat.unwrap_err().report().to_string();
    assert!(report.contains("missing, which is no directory"), "{report}");
}
