//! ASK-04: the model asks the person.

use crate::linkage::WithPlugin;
use goondan::decision::{AnswerKind, Decision};
use goondan::event::AgentEvent;
use goondan::middleware::FinishReason;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::{Agent, Instance, Value, json};
use goondan_covers::{both_linkages, covers};

/// A conversation whose model asks so.
async fn asking(args: Value, config: Value) -> Instance {
    let script = [ScriptItem::call("ask__person", args), ScriptItem::say("done").repeat()];
    let agent = Agent::builder("guide").model(ScriptedModel::new(script)).plugin("ask", "ask", config);
    agent.build().unwrap().instance("test").await.unwrap()
}

/// Returns what the model has read of the answer.
async fn read(instance: &Instance) -> String {
    let messages = instance.messages().await.unwrap();
    let of_tool = messages.iter().find(|message| message.role() == goondan::conversation::Role::Tool);
    of_tool.unwrap().content().parts()[0].to_string()
}

#[both_linkages]
#[covers("ASK-04")]
async fn the_model_reads_the_answer() {
    let options = ["on foot", "by tram"];
    for (args, answer, expected) in [
        (json!({ "question": "How?" }), json!("by tram"), "by tram"),
        (json!({ "question": "How?", "options": options }), json!("by tram"), "by tram"),
        (
            json!({ "question": "How?", "options": options, "several": true }),
            json!(options),
            r#"["on foot","by tram"]"#,
        ),
    ] {
        let instance = asking(args.clone(), json!({})).await;
        let turn = instance.run("go").await.unwrap();
        let wait = turn.waits()[0].clone();
        assert_eq!(wait.presentation.line, "How?");
        let kind = wait.questions[0].question.kind();
        match (args.get("options"), args.get("several")) {
            (None, _) => assert_eq!(kind, AnswerKind::Text),
            (_, None) => assert!(matches!(kind, AnswerKind::Choose(_))),
            _ => assert!(matches!(kind, AnswerKind::ChooseSeveral(_))),
        }
        assert!(instance.decide([Decision::new(wait.call.clone(), 7)]).await.is_err());
        assert_eq!(instance.decide([Decision::new(wait.call, answer)]).await.unwrap().text(), "done");
        assert!(read(&instance).await.contains(expected), "{}", read(&instance).await);
        instance.close().await.unwrap();
    }
}

/// A person who says something else is answered.
#[both_linkages]
#[covers("ASK-04")]
async fn another_input_is_answered_instead() {
    let instance = asking(json!({ "question": "How?" }), json!({ "expires": "1h" })).await;
    let wait = instance.run("go").await.unwrap().waits()[0].clone();
    let hour = std::time::Duration::from_secs(3600);
    assert_eq!(wait.expires.unwrap().since(wait.since), hour);
    let mut event = AgentEvent::input("never mind");
    event.created_at = event.created_at.after(hour / 3600);
    assert_eq!(instance.run(event).await.unwrap().finish_reason(), FinishReason::TextResponse);
    assert!(read(&instance).await.contains("the user said something else"));
    instance.close().await.unwrap();
}

#[both_linkages]
#[covers("ASK-04")]
async fn a_question_that_nobody_can_answer_is_not_asked() {
    for args in [
        json!({ "question": " " }),
        json!({ "question": "x".repeat(4_001) }),
        json!({ "question": "How?", "options": [""] }),
        json!({ "question": "How?", "options": ["x".repeat(201)] }),
        json!({ "question": "How?", "options": vec!["x"; 21] }),
    ] {
        let instance = asking(args, json!({})).await;
        assert_eq!(instance.run("go").await.unwrap().text(), "done");
        assert!(read(&instance).await.contains("E_"), "{}", read(&instance).await);
        instance.close().await.unwrap();
    }
    let error =
        Agent::builder("guide").model(ScriptedModel::new([])).plugin("ask", "ask", json!({ "expires": "soon" }));
    let error = error.build().unwrap().instance("test").await.unwrap_err();
    assert!(error.report().to_string().contains("`expires: soon` is no duration"), "{}", error.report());
}
