//! Which folders are skills, and what they are called.

use std::fs;
use std::os::unix::fs::symlink;

use goondan::{ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};
use nix::sys::stat::Mode;

use super::support::{Repo, builder, call, defaults, listed, refused, shown, warnings};

fn directories(names: &[&str]) -> Value {
    json!({ "discovery": { "repoSkillDirs": names } })
}

#[both_linkages]
#[covers("PATTERN-SKILL-07")]
async fn directories_are_searched_in_their_order_and_the_first_of_a_name_counts() {
    let repo = Repo::new();
    repo.write("a/same/SKILL.md", "# First");
    repo.write("b/same/SKILL.md", "# Second");
    repo.write("b/other/SKILL.md", "# Other");
    let mut chat = repo.chat(directories(&["b", "a"])).await;
    let list = call(&mut chat, "list", json!({})).await;
    assert_eq!(list["skills"][1]["description"], "Second");
    assert_eq!(list["total"], 2);
    repo.write("a/first/SKILL.md", "# By directory, then by name");
    assert!(warnings(&chat)[0].contains("a/same is left out"), "{:?}", warnings(&chat));
    let mut turned = repo.chat(directories(&["./a", "b"])).await;
    assert_eq!(call(&mut turned, "list", json!({})).await["skills"][1]["description"], "First");
    assert_eq!(listed(&mut turned).await, ["first", "same", "other"]);
    turned.say("hello").await.unwrap();
    assert!(
        shown(&turned, "There are skills")[0].contains("- first: By directory, then by name\n- same: First\n- other")
    );
}

#[both_linkages]
#[covers("PATTERN-SKILL-09", "PATTERN-SKILL-11")]
async fn a_skill_is_a_folder_with_its_file() {
    let repo = Repo::with_two();
    repo.write("skills/README.md", "no skill");
    repo.write("skills/notes/notes.md", "no skill");
    repo.write("skills/deep/below/SKILL.md", "too deep");
    let mut chat = repo.chat(directories(&["missing", "skills/README.md", "skills"])).await;
    assert_eq!(listed(&mut chat).await, ["deploy", "review"]);
    assert_eq!(warnings(&chat), [""; 0]);
}

#[both_linkages]
#[covers("PATTERN-SKILL-10")]
async fn the_first_line_describes_a_skill_or_else_its_name() {
    let repo = Repo::new();
    repo.write("skills/heading/SKILL.md", "## Deploys the shop\nmore");
    repo.write("skills/empty/SKILL.md", "");
    let list = call(&mut repo.chat(defaults()).await, "list", json!({})).await;
    assert_eq!(list["skills"][0]["description"], "Skill: empty");
    assert_eq!(list["skills"][1]["description"], "Deploys the shop");
}

/// The forms that the front matter of published skills has.
#[both_linkages]
#[covers("FRONT-01", "D-30")]
async fn eighteen_folders_with_front_matter_have_eighteen_descriptions() {
    let repo = Repo::new();
    let forms = [
        ("plain", "description: Draws pictures with code. Use it for posters."),
        ("with-license", "description: Draws pictures.\nlicense: Complete terms in LICENSE.txt"),
        ("license-first", "license: MIT\ndescription: Draws pictures."),
        ("quoted", "description: \"Draws pictures: posters, cards (A4, A5) and \\\"banners\\\".\""),
        ("single-quoted", "description: 'Draws pictures: posters and the like.'"),
        ("block", "description: |-\n  Draws pictures.\n  Use it for posters."),
        ("block-with-end", "description: |\n  Draws pictures.\n"),
        ("folded", "description: >\n  Draws pictures\n  on paper.\n"),
        ("folded-strip", "description: >-\n  Draws pictures\n\n  on paper."),
        ("continued", "description: Draws pictures\n  on paper, and\n  on walls."),
        ("colons", "description: Draws pictures. Use when: (1) the user asks, (2) TRIGGER: a poster"),
        ("numbered", "description: Draws pictures, 1) on paper, 2) on walls"),
        ("tools", "description: Draws pictures.\nallowed-tools: [Read, Write]\nmetadata:\n  version: \"1.0\""),
        ("tools-star", "description: Draws pictures.\nallowed-tools: *"),
        ("compatibility", "description: Draws pictures.\ncompatibility: needs node >= 20"),
        ("comment", "# a comment\ndescription: Draws pictures. # another"),
        ("hangul", "description: 그림을 그립니다."),
        ("dash", "description: Draws pictures — also --- lines."),
    ];
    for (name, front) in forms {
        let name_line = if name == "quoted" { "name: something-else" } else { &format!("name: {name}") };
        repo.write(&format!("skills/{name}/SKILL.md"), &format!("---\n{name_line}\n{front}\n---\n\n# Title\n"));
    }
    let mut chat = repo.chat(defaults()).await;
    let list = call(&mut chat, "list", json!({})).await;
    assert_eq!(list["total"], 18);
    for skill in list["skills"].as_array().unwrap() {
        let (name, description) = (skill["name"].as_str().unwrap(), skill["description"].as_str().unwrap());
        let begins = description.starts_with("Draws pictures") || description == "그림을 그립니다.";
        let is_clean = !description.contains('\n') && !description.ends_with(['"', '\'']);
        assert!(begins && is_clean, "{name}: {description}");
    }
    let described = |name| list["skills"].as_array().unwrap().iter().find(|skill| skill["name"] == name).unwrap();
    assert_eq!(described("quoted")["description"], "Draws pictures: posters, cards (A4, A5) and \"banners\".");
    assert_eq!(described("folded-strip")["description"], "Draws pictures on paper.");
    assert!(described("colons")["description"].as_str().unwrap().ends_with("TRIGGER: a poster"));
    let warnings = warnings(&chat);
    assert!(warnings.len() == 1 && warnings[0].contains("`quoted`, not `something-else`"), "{warnings:?}");
}

#[both_linkages]
#[covers("PATTERN-SKILL-20")]
async fn three_directories_are_searched_by_default() {
    let repo = Repo::new();
    repo.write(".agents/skills/a/SKILL.md", "# From .agents");
    repo.write("skills/a/SKILL.md", "# From skills");
    repo.write("skills/b/SKILL.md", "# From skills");
    repo.write(".claude/skills/b/SKILL.md", "# From .claude");
    repo.write(".claude/skills/c/SKILL.md", "# From .claude");
    let list = call(&mut repo.chat(defaults()).await, "list", json!({})).await;
    let descriptions: Vec<_> = (0..3).map(|index| list["skills"][index]["description"].as_str().unwrap()).collect();
    assert_eq!(descriptions, ["From .agents", "From skills", "From .claude"]);
}

#[both_linkages]
#[covers("PATTERN-SKILL-18")]
async fn a_repository_that_becomes_available_is_the_new_root() {
    let (first, second) = (Repo::with_two(), Repo::new());
    second.write("skills/bake/SKILL.md", "# Bakes bread");
    let mut chat = first.chat(defaults()).await;
    assert_eq!(listed(&mut chat).await, ["deploy", "review"]);
    chat.emit("workspace.repoAvailable", (json!({ "path": second.path("") }),)).await.unwrap();
    assert_eq!(listed(&mut chat).await, ["bake"]);
    chat.restart().await.unwrap();
    assert_eq!(listed(&mut chat).await, ["bake"], "the root is kept");
    second.write("below/skills/brew/SKILL.md", "# Brews tea");
    chat.emit("workspace.repoAvailable", (json!({ "path": "below" }),)).await.unwrap();
    assert_eq!(listed(&mut chat).await, ["brew"], "a relative path starts at the root");
}

#[both_linkages]
#[covers("PATTERN-SKILL-08")]
async fn each_scan_has_a_switch() {
    let (first, second) = (Repo::with_two(), Repo::new());
    second.write("skills/bake/SKILL.md", "# Bakes bread");
    let available = json!({ "path": second.path("") });
    let mut later = first.chat(json!({ "discovery": {}, "autoScan": { "onInit": false } })).await;
    assert_eq!(listed(&mut later).await, [""; 0]);
    later.emit("workspace.repoAvailable", (&available,)).await.unwrap();
    assert_eq!(listed(&mut later).await, ["bake"]);
    let mut once = first.chat(json!({ "discovery": {}, "autoScan": { "onRepoAvailable": false } })).await;
    once.emit("workspace.repoAvailable", (&available,)).await.unwrap();
    assert_eq!(listed(&mut once).await, ["deploy", "review"]);
}

#[both_linkages]
#[covers("PATTERN-SKILL-19")]
async fn without_a_config_the_extension_warns_and_registers_nothing() {
    let repo = Repo::with_two();
    let chat = repo.chat(json!({})).await;
    assert!(warnings(&chat)[0].contains("no skills are configured"), "{:?}", warnings(&chat));
    assert!(chat.instance().tools().await.unwrap().is_empty());
    chat.say("hello").await.unwrap();
    assert_eq!(chat.last_request().transcript(), ["user: hello"]);
    for (config, about) in [
        (json!({ "run": false }), "the config has no `discovery`"),
        (directories(&["../other"]), "`../other`"),
        (directories(&["/etc"]), "`/etc`"),
        (json!({ "discovery": {}, "maxOpen": 0 }), "maxOpen"),
    ] {
        let error = repo.builder(config).start().await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::EXT_CONFIG);
        assert!(error.report().to_string().contains(about), "{}", error.report());
    }
}

#[both_linkages]
async fn links_are_followed_inside_of_the_root_only() {
    let (repo, outside) = (Repo::with_two(), Repo::new());
    outside.write("secret/SKILL.md", "# A secret");
    symlink(outside.path("secret"), repo.path("skills/folder")).unwrap();
    fs::create_dir(repo.path("skills/file")).unwrap();
    symlink(outside.path("secret/SKILL.md"), repo.path("skills/file/SKILL.md")).unwrap();
    symlink("deploy", repo.path("skills/same")).unwrap();
    symlink("nothing", repo.path("skills/dangling")).unwrap();
    fs::create_dir(repo.path("skills/pipe")).unwrap();
    nix::unistd::mkfifo(&repo.path("skills/pipe/SKILL.md"), Mode::S_IRWXU).unwrap();
    let mut chat = repo.chat(defaults()).await;
    assert_eq!(listed(&mut chat).await, ["deploy", "review", "same"]);
    assert_eq!(warnings(&chat).len(), 3, "{:?}", warnings(&chat));
    assert!(warnings(&chat)[0].contains("file is left out: a link leads out of the root"), "{:?}", warnings(&chat));
    // Also when the link comes later.
    fs::remove_file(repo.path("skills/review/SKILL.md")).unwrap();
    symlink(outside.path("secret/SKILL.md"), repo.path("skills/review/SKILL.md")).unwrap();
    let (_, message) = refused(&mut chat, "open", json!({ "name": "review" })).await;
    assert!(message.contains("a link leads out of the root"), "{message}");
}

#[both_linkages]
async fn a_root_without_skills_offers_only_the_list() {
    let repo = Repo::new();
    let chat = builder(&repo.path("missing"), defaults()).start().await.unwrap();
    chat.say("hello").await.unwrap();
    assert_eq!(chat.last_request().tool_names(), ["skills__list"]);
    assert_eq!(chat.last_request().transcript(), ["user: hello"]);
}
