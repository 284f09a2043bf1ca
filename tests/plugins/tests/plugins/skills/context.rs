//! What the model reads, and when it changes.

use std::fs;

use goondan::json;
use goondan::model::ScriptItem;
use goondan::prelude::*;
use goondan::testing::Chat;
use goondan_covers::{both_linkages, covers};

use super::support::{Repo, call, defaults, shown, warnings};
use crate::linkage::WithPlugin;

#[both_linkages]
#[covers("PATTERN-SKILL-01", "PATTERN-SKILL-12")]
async fn the_skills_are_shown_in_one_message() {
    let repo = Repo::with_two();
    let chat = repo.chat(defaults()).await;
    chat.say("hello").await.unwrap();
    let catalog = shown(&chat, "There are skills");
    assert_eq!(catalog.len(), 1);
    assert!(catalog[0].starts_with("system: "), "{catalog:?}");
    assert!(catalog[0].ends_with("\n- deploy: Deploys the shop\n- review: Reviews a change"), "{catalog:?}");
    let tools = ["skills__list", "skills__open", "skills__close", "skills__run"];
    assert_eq!(chat.last_request().tool_names(), tools);
}

#[both_linkages]
#[covers("PATTERN-SKILL-05")]
async fn each_step_has_the_instructions_of_an_open_skill() {
    let script = [
        ScriptItem::call("skills__open", json!({ "name": "review" })),
        ScriptItem::call("skills__list", json!({})),
        ScriptItem::say("done"),
        ScriptItem::say("fine"),
    ];
    let repo = Repo::with_two();
    let chat = repo.builder(defaults()).script(script).start().await.unwrap();
    chat.say("go").await.unwrap();
    chat.say("and now?").await.unwrap();
    let times: Vec<_> = chat
        .requests()
        .iter()
        .map(|request| request.transcript().iter().filter(|line| line.contains("Read it twice")).count())
        .collect();
    assert_eq!(times, [0, 1, 1, 1]);
    let messages = chat.messages().await;
    let message = messages.iter().find(|message| message.id().as_str() == "skills:open:review").unwrap();
    assert_eq!((message.role(), message.metadata()["pinned"].clone()), (Role::System, json!(true)));
    assert_eq!(shown(&chat, "It is in the message that says that the skill is open.").len(), 1);
}

#[both_linkages]
async fn a_turn_in_which_nothing_changes_only_appends_its_own_messages() {
    let repo = Repo::with_two();
    let mut chat = repo.chat(defaults()).await;
    call(&mut chat, "open", json!({ "name": "deploy" })).await;
    chat.say("one").await.unwrap();
    let before = chat.messages().await;
    chat.say("two").await.unwrap();
    let after = chat.messages().await;
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), before.len() + 2, "the input and the answer");
}

#[both_linkages]
async fn a_window_of_four_messages_does_not_take_the_skills_away() {
    let repo = Repo::with_two();
    let window = json!({ "maxMessages": 4 });
    let builder = repo.builder(defaults()).agent(|agent| agent.plugin("message-window", "message-window", window));
    let mut chat = builder.start().await.unwrap();
    call(&mut chat, "open", json!({ "name": "deploy" })).await;
    for turn in 0..12 {
        chat.say(format!("turn {turn}")).await.unwrap();
        assert_eq!(shown(&chat, "Run `./deploy.sh`").len(), 1, "{:?}", chat.last_request());
        assert_eq!(shown(&chat, "There are skills").len(), 1, "{:?}", chat.last_request());
    }
}

#[both_linkages]
async fn a_file_that_changes_is_read_again() {
    let repo = Repo::with_two();
    let mut chat = repo.chat(defaults()).await;
    call(&mut chat, "open", json!({ "name": "deploy" })).await;
    repo.write("skills/deploy/SKILL.md", "# Deploys the shop\nAsk Ada.");
    chat.say("hello").await.unwrap();
    assert_eq!((shown(&chat, "Ask Ada").len(), shown(&chat, "Run `./deploy.sh`").len()), (1, 0));
    let open = chat.messages().await.iter().filter(|message| message.id().as_str().starts_with("skills:open")).count();
    assert_eq!(open, 1);
}

#[both_linkages]
async fn a_skill_that_is_gone_is_closed_and_the_model_is_told_once() {
    let repo = Repo::with_two();
    let mut chat = repo.chat(defaults()).await;
    call(&mut chat, "open", json!({ "name": "deploy" })).await;
    fs::remove_dir_all(repo.path("skills/deploy")).unwrap();
    for _ in 0..2 {
        chat.say("hello").await.unwrap();
        assert_eq!(shown(&chat, "The skill `deploy` was closed").len(), 1);
        assert_eq!(shown(&chat, "Run `./deploy.sh`"), [""; 0]);
    }
    assert_eq!(warnings(&chat).len(), 1, "{:?}", warnings(&chat));
    assert_eq!(call(&mut chat, "close", json!({ "name": "deploy" })).await["closed"], false);
}

/// Logs what the turn has left in its metadata.
#[goondan::extension(name = "outer")]
mod outer {
    use super::*;

    #[middleware(turn, priority = -10)]
    async fn look(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>, api: &ExtensionApi) -> Result<TurnResult> {
        let result = next.run(ctx).await?;
        api.logger().info(ctx.metadata()["skills.open"].to_string());
        Ok(result)
    }
}

#[both_linkages]
#[covers("PATTERN-SKILL-02")]
async fn outer_layers_are_told_which_skills_are_open() {
    let repo = Repo::with_two();
    let mut chat: Chat = repo.builder(defaults()).with::<outer::Extension>(json!({})).start().await.unwrap();
    chat.say("hello").await.unwrap();
    call(&mut chat, "open", json!({ "name": "review" })).await;
    let lines: Vec<_> = chat.logs().into_iter().filter(|line| line.extension.as_deref() == Some("outer")).collect();
    assert_eq!([&lines[0].text, &lines[1].text], ["[]", r#"["review"]"#]);
}
