//! `candidates: marked`, the reference pattern: more than 20 marked messages are replaced by a summary at the end.

use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use super::support::{chat, is_summary, lines, say_all};

fn marked(more_than: Option<u32>) -> Value {
    let mut config = json!({ "candidates": "marked" });
    if let Some(more_than) = more_than {
        config["moreThan"] = more_than.into();
    }
    config
}

fn old(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("old {number}")).collect()
}

#[both_linkages]
#[covers("PATTERN-COMPACT-03")]
async fn twenty_candidates_stay() {
    let chat = chat(marked(None)).await;
    say_all(&chat, old(20)).await;
    chat.say("go").await.unwrap();
    assert_eq!(lines(&chat, |line| line.starts_with("user: old")).len(), 20);
    assert_eq!(lines(&chat, is_summary).len(), 0);
}

#[both_linkages]
#[covers("PATTERN-COMPACT-01", "PATTERN-COMPACT-03", "PATTERN-COMPACT-04", "COMPACT-01")]
async fn twenty_one_candidates_are_replaced_by_one_summary_at_the_end() {
    let chat = chat(marked(None)).await;
    say_all(&chat, old(21)).await;
    chat.say("go").await.unwrap();
    // The model is sent what does not go, the input, and the summary.
    let summary = "system: [message-compaction] 21 earlier messages (117 characters) were removed without a summary.";
    let expected: Vec<_> = (0..21).map(|_| "assistant: ok").chain(["user: go", summary]).collect();
    assert_eq!(chat.last_request().transcript(), expected);

    let messages = chat.messages().await;
    let summary = messages.iter().find(|message| message.metadata().contains_key("compaction.summary")).unwrap();
    let mut metadata = json!(summary.metadata());
    let stands_for = metadata.as_object_mut().unwrap().remove("standsFor");
    assert_eq!(stands_for, Some(json!(summary.stands_for().unwrap())));
    assert_eq!(
        metadata,
        json!({
            "compaction.summary": true, "compaction.removed": 21, "compaction.characters": 117,
            "compaction.written": false
        })
    );
    let done: Vec<Value> = chat.events("compaction.done").iter().map(|event| event.args()[0].clone()).collect();
    assert_eq!(done.len(), 1);
    assert_eq!((&done[0]["removed"], &done[0]["written"]), (&json!(21), &json!(false)));
    assert_eq!((&done[0]["before"]["messages"], &done[0]["after"]["messages"]), (&json!(43), &json!(23)));
}

#[both_linkages]
#[covers("PATTERN-COMPACT-02", "PATTERN-COMPACT-05")]
async fn pinned_and_unmarked_messages_and_the_newest_input_stay() {
    let chat = chat(marked(Some(1))).await;
    say_all(&chat, ["old 1", "old pin", "new", "old 2", "old 3"]).await;
    let expected = ["user: old pin", "user: new", "user: old 3"];
    assert_eq!(lines(&chat, |line| line.starts_with("user:")), expected);
    assert_eq!(lines(&chat, is_summary).len(), 1);
}

#[both_linkages]
async fn a_summary_goes_with_the_next_one() {
    let chat = chat(marked(Some(3))).await;
    say_all(&chat, old(100)).await;
    assert!(chat.events("compaction.done").len() > 20);
    for request in chat.requests() {
        let summaries = request.transcript().iter().filter(|line| is_summary(line)).count();
        assert!(summaries <= 1, "{request:?}");
    }
    // It counts what earlier ones have replaced.
    assert!(lines(&chat, is_summary)[0].contains("96 earlier messages"), "{:?}", lines(&chat, is_summary));
}

#[both_linkages]
#[covers("COMPACT-01")]
async fn the_summary_is_placed_first_if_the_config_says_so() {
    let mut config = marked(Some(1));
    config["place"] = json!("first");
    let chat = chat(config).await;
    say_all(&chat, ["pin", "old 1", "old 2", "go"]).await;
    let transcript = chat.last_request().transcript();
    assert!(transcript[0] == "user: pin" && is_summary(&transcript[2]), "{transcript:?}");
    assert_eq!(transcript.last().unwrap(), "user: go");
}
