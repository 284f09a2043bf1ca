//! Paths that lead out of the roots, or to something else than a file: each is refused, by every tool.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::both_linkages;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use tempfile::TempDir;

use crate::call::{call, open, refused};

const SECRET: &str = "the secret";

/// A root, and beside it a directory that nothing may reach.
struct World {
    directory: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { directory: TempDir::new().unwrap() };
        fs::create_dir_all(world.root().join("sub")).unwrap();
        fs::create_dir_all(world.outside().join("sub")).unwrap();
        fs::write(world.outside().join("secret"), SECRET).unwrap();
        fs::write(world.root().join("sub/inside"), "inside").unwrap();
        world
    }

    fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("root")
    }

    fn outside(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("outside")
    }

    async fn chat(&self) -> Chat {
        open("file-system", json!({ "roots": [self.root()] })).await
    }

    /// Asserts that nothing outside was changed.
    fn assert_untouched(&self) {
        let names = |path: &Path| {
            let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&self.outside()), ["secret", "sub"]);
        assert_eq!(names(&self.outside().join("sub")), [""; 0]);
        assert_eq!(fs::read_to_string(self.outside().join("secret")).unwrap(), SECRET);
        assert_eq!(names(self.directory.path()), ["outside", "root"]);
    }
}

/// The calls of all tools that follow a link at the end of `path`.
fn following(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read", json!({ "path": path })),
        ("write", json!({ "path": path, "content": "x" })),
        ("write", json!({ "path": path, "content": "x", "append": true })),
        ("edit", json!({ "path": path, "oldText": "secret", "newText": "x" })),
        ("list", json!({ "path": path })),
    ]
}

/// The calls of all tools.
fn all(path: &str) -> Vec<(&'static str, Value)> {
    let mut calls = following(path);
    calls.extend([
        ("stat", json!({ "path": path })),
        ("mkdir", json!({ "path": path })),
        ("mkdir", json!({ "path": path, "recursive": false })),
    ]);
    // What ends in `..` may be a root, which is not deleted.
    if !path.ends_with("..") {
        calls.push(("delete", json!({ "path": path })));
        calls.push(("delete", json!({ "path": path, "recursive": true })));
    }
    calls
}

/// Asserts that each call is refused, with one of the codes.
async fn assert_refused(chat: &mut Chat, calls: Vec<(&str, Value)>, codes: &[&str]) {
    for (tool, arguments) in calls {
        let (code, message) = refused(chat, &format!("file-system__{tool}"), arguments.clone()).await;
        assert!(codes.contains(&code.as_str()), "{tool} {arguments}: {code} {message}");
        assert!(!message.contains(SECRET), "{message}");
    }
}

#[both_linkages]
async fn no_path_leads_out() {
    let world = World::new();
    let mut chat = world.chat().await;
    let outside = world.outside();
    for path in [
        // 1 to 6: up and out, also through directories that exist.
        "../outside/secret".to_owned(),
        "..".to_owned(),
        "sub/../../outside/secret".to_owned(),
        "./.././outside/secret".to_owned(),
        format!("{}/../outside/secret", world.root().display()),
        format!("{}/sub/../../outside/sub", world.root().display()),
        // 7 to 10: absolute paths, also one that begins like the root.
        outside.join("secret").display().to_string(),
        "/etc/passwd".to_owned(),
        "/".to_owned(),
        format!("{}-other/secret", world.root().display()),
        // 11: the way around by the kernel.
        format!("/proc/self/root{}", outside.join("secret").display()),
    ] {
        assert_refused(&mut chat, all(&path), &["E_FILE_OUTSIDE"]).await;
    }
    world.assert_untouched();
}

#[both_linkages]
async fn no_link_leads_out() {
    let world = World::new();
    let mut chat = world.chat().await;
    let link = |target: &Path, name: &str| symlink(target, world.root().join(name)).unwrap();
    // 12 to 17: to a file and to a directory, absolute and relative, over another link, and over /proc.
    link(&world.outside().join("secret"), "to-file");
    link(Path::new("../outside/secret"), "to-file-relative");
    link(&world.outside(), "to-directory");
    link(Path::new("../../outside"), "sub/to-directory");
    link(Path::new("sub/to-directory"), "to-link");
    link(Path::new("/proc/self/cwd"), "to-proc");
    for path in ["to-file", "to-file-relative", "to-directory", "sub/to-directory", "to-link", "to-proc"] {
        assert_refused(&mut chat, following(path), &["E_FILE_OUTSIDE", "E_FILE_IO"]).await;
    }
    for path in ["to-directory/secret", "sub/to-directory/secret", "to-link/secret", "to-directory/sub", "to-link/sub"]
    {
        assert_refused(&mut chat, all(path), &["E_FILE_OUTSIDE"]).await;
    }
    // A link that leads to nothing yet, at which a file would come into being outside.
    link(&world.outside().join("new"), "dangling");
    let new = json!({ "path": "dangling", "content": "x" });
    assert_refused(&mut chat, vec![("write", new)], &["E_FILE_OUTSIDE", "E_FILE_IO"]).await;
    // A list shows the links, and follows none.
    let list = call(&mut chat, "file-system__list", json!({ "recursive": true })).await;
    assert!(!list.to_string().contains("secret"), "{list}");
    // Deleting a link deletes the link.
    for path in ["to-file", "to-directory", "to-link", "dangling"] {
        let deleted = json!({ "path": path, "recursive": true });
        assert_eq!(call(&mut chat, "file-system__delete", deleted).await["type"], "link");
    }
    // So does deleting a directory that holds some.
    let deleted = json!({ "path": "sub", "recursive": true });
    assert_eq!(call(&mut chat, "file-system__delete", deleted).await["type"], "dir");
    world.assert_untouched();
}

#[both_linkages]
async fn what_is_no_file_is_not_opened() {
    let world = World::new();
    let mut chat = world.chat().await;
    // 18: a pipe that nothing writes to, at which a read would wait. 19: a socket.
    let pipe = world.root().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _listener = UnixListener::bind(world.root().join("socket")).unwrap();
    for path in ["pipe", "socket"] {
        let calls: Vec<_> = following(path).into_iter().filter(|(tool, _)| *tool != "list").collect();
        assert_refused(&mut chat, calls, &["E_FILE_KIND"]).await;
    }
    // 20: text that no path has. 21: a name that is too long. 22: links in a circle.
    symlink("circle", world.root().join("circle")).unwrap();
    let long = "x".repeat(300);
    for path in ["nul\0byte", "sub/\0", &long, &format!("{long}/x"), "circle/x"] {
        assert_refused(&mut chat, following(path), &["E_FILE_IO"]).await;
    }
    // A directory of devices as a root: they are no files.
    let mut chat = open("file-system", json!({ "roots": ["/dev"] })).await;
    for path in ["zero", "null", "/dev/zero"] {
        assert_refused(&mut chat, vec![("read", json!({ "path": path }))], &["E_FILE_KIND"]).await;
    }
    world.assert_untouched();
}

/// How often each tool is called while directories are swapped.
const TRIES: usize = 25;

/// 23: another process swaps a directory for a link while the tools work.
#[both_linkages]
async fn a_directory_that_becomes_a_link_meanwhile_does_not_lead_out() {
    let world = World::new();
    fs::write(world.root().join("sub/secret"), "inside").unwrap();
    symlink(world.outside(), world.root().join("link")).unwrap();
    let mut chat = world.chat().await;
    let (stop, root) = (Arc::new(AtomicBool::new(false)), world.root());
    let swapping = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let (directory, link) = (root.join("sub"), root.join("link"));
            while !stop.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, &directory, AT_FDCWD, &link, RenameFlags::RENAME_EXCHANGE).unwrap();
            }
        }
    });
    for number in 0..TRIES {
        let path = format!("sub/new-{number}");
        for (tool, arguments) in [
            ("read", json!({ "path": "sub/secret" })),
            ("write", json!({ "path": path, "content": "x" })),
            ("write", json!({ "path": path, "content": "x", "append": true })),
            ("edit", json!({ "path": "sub/secret", "oldText": "inside", "newText": "inside" })),
            ("mkdir", json!({ "path": format!("{path}-dir/deep") })),
            ("list", json!({ "path": ".", "recursive": true })),
            ("delete", json!({ "path": path })),
            ("delete", json!({ "path": format!("{path}-dir"), "recursive": true })),
        ] {
            let result = chat.call(&format!("file-system__{tool}"), arguments).await.unwrap();
            let text = format!("{:?} {:?}", result.output(), result.error());
            assert!(!text.contains(SECRET), "{tool}: {text}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    world.assert_untouched();
}

/// A second name of a file outside is that file, and nothing tells them apart.
#[both_linkages]
async fn a_hard_link_is_the_file_itself() {
    let world = World::new();
    fs::hard_link(world.outside().join("secret"), world.root().join("hard")).unwrap();
    let mut chat = world.chat().await;
    let read = call(&mut chat, "file-system__read", json!({ "path": "hard" })).await;
    assert_eq!(read["content"], SECRET);
    // A write makes a file of its own, and leaves the other one as it was.
    call(&mut chat, "file-system__write", json!({ "path": "hard", "content": "x" })).await;
    world.assert_untouched();
}
