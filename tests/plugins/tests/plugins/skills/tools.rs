//! What the tools answer.

use goondan::json;
use goondan_covers::{both_linkages, covers};

use super::support::{Repo, call, defaults, refused, shown};

#[both_linkages]
#[covers("PATTERN-SKILL-03")]
async fn the_list_has_each_skill() {
    let repo = Repo::with_two();
    let list = call(&mut repo.chat(defaults()).await, "list", json!({})).await;
    let path = |name| repo.path(&format!("skills/{name}/SKILL.md"));
    let all = json!([
        { "name": "deploy", "description": "Deploys the shop", "path": path("deploy") },
        { "name": "review", "description": "Reviews a change", "path": path("review") },
    ]);
    assert_eq!(list, json!({ "skills": all, "items": all, "total": 2 }));
}

#[both_linkages]
#[covers("PATTERN-SKILL-04", "PATTERN-SKILL-13")]
async fn opening_returns_the_instructions_which_are_in_the_context_from_then_on() {
    let repo = Repo::with_two();
    let mut chat = repo.chat(defaults()).await;
    let opened = call(&mut chat, "open", json!({ "name": "deploy" })).await;
    assert_eq!(opened["content"], "# Deploys the shop\nRun `./deploy.sh`.");
    assert_eq!(opened["name"], "deploy");
    assert_eq!(opened["path"], json!(repo.path("skills/deploy/SKILL.md")));
    assert_eq!(opened["dir"], json!(repo.path("skills/deploy")));
    assert!(opened["hint"].as_str().unwrap().contains("skills__run"), "{opened}");
    // The next step of the same turn.
    let open = shown(&chat, "Run `./deploy.sh`");
    assert_eq!(open.len(), 1, "once, and not in the result as well: {open:?}");
    assert!(open[0].starts_with("system: The skill `deploy` is open."), "{open:?}");
    assert!(open[0].contains(&repo.path("skills/deploy").display().to_string()), "{open:?}");
    let (code, _) = refused(&mut chat, "open", json!({})).await;
    assert_eq!(code, "E_TOOL_INVALID_ARGS", "`name` is required");
}

#[both_linkages]
#[covers("PATTERN-SKILL-14")]
async fn an_unknown_skill_is_an_error_with_similar_names() {
    let repo = Repo::with_two();
    let mut chat = repo.chat(defaults()).await;
    for (tool, arguments) in
        [("open", json!({ "name": "deplyo" })), ("run", json!({ "name": "deplyo", "command": "ls" }))]
    {
        let (code, message) = refused(&mut chat, tool, arguments).await;
        assert_eq!(code, "E_SKILLS_UNKNOWN");
        assert_eq!(message, "there is no skill `deplyo`; did you mean `deploy`?");
    }
    let (_, message) = refused(&mut chat, "open", json!({ "name": "zzz" })).await;
    assert_eq!(message, "there is no skill `zzz`; `skills__list` lists the skills");
}

#[both_linkages]
#[covers("PATTERN-SKILL-15")]
async fn closing_says_whether_the_skill_was_open() {
    let repo = Repo::with_two();
    let mut chat = repo.chat(defaults()).await;
    call(&mut chat, "open", json!({ "name": "review" })).await;
    assert_eq!(shown(&chat, "Read it twice").len(), 1);
    let closed = call(&mut chat, "close", json!({ "name": "review" })).await;
    assert_eq!(closed, json!({ "closed": true, "name": "review" }));
    assert_eq!(shown(&chat, "Read it twice"), [""; 0]);
    let again = call(&mut chat, "close", json!({ "name": "review" })).await;
    assert_eq!(again, json!({ "closed": false, "name": "review" }));
}

#[both_linkages]
async fn few_skills_are_open_at_a_time() {
    let repo = Repo::with_two();
    let mut chat = repo.chat(json!({ "discovery": {}, "maxOpen": 1 })).await;
    for _ in 0..2 {
        call(&mut chat, "open", json!({ "name": "review" })).await;
        assert_eq!(shown(&chat, "Read it twice").len(), 1);
    }
    let (code, message) = refused(&mut chat, "open", json!({ "name": "deploy" })).await;
    assert_eq!(code, "E_SKILLS_OPEN");
    assert!(message.contains("no more than 1 can be open, and these are: review"), "{message}");
    call(&mut chat, "close", json!({ "name": "review" })).await;
    call(&mut chat, "open", json!({ "name": "deploy" })).await;
}

#[both_linkages]
async fn long_instructions_are_cut_and_the_model_is_told_where_the_rest_is() {
    let repo = Repo::new();
    repo.write("skills/long/SKILL.md", &"é".repeat(2000));
    let mut chat = repo.chat(json!({ "discovery": {}, "maxCharacters": 100 })).await;
    let content = call(&mut chat, "open", json!({ "name": "long" })).await["content"].as_str().unwrap().to_owned();
    let path = repo.path("skills/long/SKILL.md");
    let note = "\n[1900 of 2000 characters are left out here, in line 1. The whole text is in the file ";
    assert!(content.starts_with(&("é".repeat(100) + note + &path.display().to_string())), "{content}");
    assert_eq!(shown(&chat, "[1900 of 2000 characters").len(), 1);
}
