//! Paths that no tool changes, because programs obey what is there.

use std::fs;
use std::os::unix::fs::symlink;

use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::call::{call, open, refused};

/// Returns the code of the error with which a tool refuses a path, if it does.
async fn code(chat: &mut Chat, tool: &str, arguments: Value) -> Option<String> {
    let result = chat.call(&format!("file-system__{tool}"), arguments).await.unwrap();
    result.error().map(|error| error.code.clone().unwrap_or_default())
}

/// Returns a directory with a repository, and the tools for it.
async fn in_repository(config: Value) -> (TempDir, Chat) {
    let directory = TempDir::new().unwrap();
    fs::create_dir_all(directory.path().join(".git/hooks")).unwrap();
    for file in [".git/config", ".gitignore", ".bashrc", "sub/.zshrc", "keys/a.pem", "notes"] {
        fs::create_dir_all(directory.path().join(file).parent().unwrap()).unwrap();
        fs::write(directory.path().join(file), "old").unwrap();
    }
    let mut config = config;
    config["roots"] = json!([directory.path()]);
    let chat = open("file-system", config).await;
    (directory, chat)
}

const PROTECTED: [&str; 14] = [
    ".git/config",
    ".git/hooks/pre-commit",
    "./sub/../.git/config",
    ".GIT/config",
    "git~1/config",
    ".git /config",
    ".g\u{200c}it/config",
    "sub/.git",
    ".gitignore",
    "sub/.gitattributes",
    ".github/workflows/ci.yml",
    ".bashrc",
    "sub/.zshrc",
    "home/.config/fish/config.fish",
];

#[both_linkages]
#[covers("TREE-01")]
async fn what_git_and_shells_obey_is_read_but_not_changed() {
    let (directory, mut chat) = in_repository(json!({})).await;
    for path in PROTECTED {
        for (tool, arguments) in [
            ("write", json!({ "path": path, "content": "new" })),
            ("write", json!({ "path": path, "content": "new", "append": true })),
            ("edit", json!({ "path": path, "oldText": "old", "newText": "new" })),
            ("mkdir", json!({ "path": path })),
            ("delete", json!({ "path": path, "recursive": true })),
        ] {
            assert_eq!(code(&mut chat, tool, arguments).await.as_deref(), Some("E_FILE_PROTECTED"), "{tool} {path}");
        }
    }
    let (_, text) = refused(&mut chat, "file-system__delete", json!({ "path": ".git", "recursive": true })).await;
    assert!(text.contains("is protected"), "{text}");
    // Nor with the directory around it.
    let around = json!({ "path": "sub", "recursive": true });
    assert_eq!(code(&mut chat, "delete", around).await.as_deref(), Some("E_FILE_PROTECTED"));
    for file in [".git/config", ".gitignore", ".bashrc", "sub/.zshrc"] {
        assert_eq!(call(&mut chat, "file-system__read", json!({ "path": file })).await["content"], "old");
    }
    let mut left: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".bashrc", ".git", ".gitignore", "keys", "notes", "sub"]);
    for path in ["git", "a.gitignore", "keys/b", ".config/other"] {
        assert_eq!(code(&mut chat, "write", json!({ "path": path, "content": "new" })).await, None, "{path}");
    }
}

#[both_linkages]
#[covers("TREE-01")]
async fn no_link_leads_to_a_protected_file() {
    let (directory, mut chat) = in_repository(json!({})).await;
    symlink(".git", directory.path().join("link")).unwrap();
    symlink(".git/config", directory.path().join("file")).unwrap();
    symlink(".git/hooks/pre-commit", directory.path().join("nothing")).unwrap();
    for path in ["link/config", "link/hooks/new", "link/new/new", "file"] {
        let arguments = json!({ "path": path, "content": "new" });
        assert_eq!(code(&mut chat, "write", arguments).await.as_deref(), Some("E_FILE_PROTECTED"), "{path}");
    }
    for append in [false, true] {
        let arguments = json!({ "path": "nothing", "content": "new", "append": append });
        assert_eq!(code(&mut chat, "write", arguments).await.as_deref(), Some("E_FILE_IO"));
    }
    assert_eq!(code(&mut chat, "delete", json!({ "path": "link/config" })).await.as_deref(), Some("E_FILE_PROTECTED"));
    // The link itself is not what it leads to.
    assert_eq!(code(&mut chat, "delete", json!({ "path": "link" })).await, None);
    assert_eq!(fs::read_dir(directory.path().join(".git/hooks")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(directory.path().join(".git/config")).unwrap(), "old");
}

#[both_linkages]
async fn the_config_protects_more_paths_or_none() {
    let (_directory, mut chat) = in_repository(json!({ "protect": ["keys/*.pem", "notes"] })).await;
    for path in ["keys/a.pem", "keys/B.PEM", "notes", "sub/notes/a", ".git/config", ".bashrc"] {
        let arguments = json!({ "path": path, "content": "new" });
        assert_eq!(code(&mut chat, "write", arguments).await.as_deref(), Some("E_FILE_PROTECTED"), "{path}");
    }
    assert_eq!(code(&mut chat, "write", json!({ "path": "sub/keys/a.pem", "content": "new" })).await, None);
    let (directory, mut chat) = in_repository(json!({ "protect": [] })).await;
    for path in PROTECTED {
        let arguments = json!({ "path": path, "content": "new" });
        assert_eq!(code(&mut chat, "write", arguments).await, None, "{path}");
    }
    assert_eq!(fs::read_to_string(directory.path().join(".git/config")).unwrap(), "new");
}
