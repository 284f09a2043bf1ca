//! `goondan instance show`: the messages of a conversation, the cost of each turn, its status, and how its last turn
//! ended.

use std::fmt::Write as _;
use std::sync::Arc;

use goondan::Result;
use goondan::conversation::{Message, Role, Source};
use goondan::decision::Wait;
use goondan::event::TokenUsage;
use goondan::store::{InstanceStatus, StoredConversation, TurnOutcome};
use goondan_text::NumberedFile;

use super::find::find;
use crate::args::InstanceShowArgs;
use crate::output::cost::{self, KeptPrefixes, TurnCost};
use crate::output::{self, message, waits};

/// The number of characters after which a text is cut, without `--full`.
const MAX_CHARS: usize = 400;

pub(crate) fn show(args: &InstanceShowArgs) -> Result<()> {
    let (store, id) = find(&args.selector)?;
    let conversation = store.read(&id)?;
    let costs = cost::of_turns(store.runtime_events(&id)?);
    let limit = if args.full { usize::MAX } else { MAX_CHARS };
    let mut text = String::new();
    for item in in_order(&conversation.messages, &costs) {
        text.push_str(&if args.json { line(&item)? } else { paragraph(&item, limit) });
    }
    let (status, usage, kept) = (store.status(&id)?, cost::total(&costs), cost::kept_prefixes(&costs));
    // A directory that cannot be read has none that could be deleted.
    let output = NumberedFile::used(&store.instance_dir(&id).join("workspace")).unwrap_or_default();
    if args.json {
        text.push_str(&end_line(&conversation, status, usage, kept, output));
    } else {
        // Writing to a string does not fail.
        _ = usage.map_or(Ok(()), |usage| writeln!(text, "(together: {})", cost::tokens(&usage)));
        let percent = kept.and_then(|kept| kept.percent());
        _ = percent.map_or(Ok(()), |percent| writeln!(text, "({percent} % of all requests were kept by the next)"));
        if output > 0 {
            _ = writeln!(text, "(the output files in the working directory have {output} bytes)");
        }
        text.push_str(&end_paragraph(&conversation, status));
    }
    if args.json { output::print_data(text) } else { output::print(&text) }
}

/// The last line of the JSON output.
fn end_line(
    conversation: &StoredConversation,
    status: InstanceStatus,
    usage: Option<TokenUsage>,
    kept: Option<KeptPrefixes>,
    output_bytes: u64,
) -> String {
    let StoredConversation { open_turn, outcome, waits, .. } = conversation;
    let mut end = serde_json::json!({
        "status": status, "openTurn": open_turn, "outcome": outcome, "outputBytes": output_bytes,
    });
    if !waits.is_empty() {
        end["waits"] = serde_json::json!(waits.iter().map(Wait::masked).collect::<Vec<_>>());
    }
    if let Some(usage) = usage {
        end["tokenUsage"] = serde_json::json!(usage);
    }
    if let Some(kept) = kept {
        end["keptPrefix"] = serde_json::json!(kept);
    }
    serde_json::json!({ "instance": end }).to_string() + "\n"
}

fn end_paragraph(conversation: &StoredConversation, status: InstanceStatus) -> String {
    let mut text = match &conversation.outcome {
        Some(TurnOutcome::Answered { event, .. }) => format!("(the last turn answered {event})\n"),
        Some(TurnOutcome::Cancelled { event, .. }) => format!("(the last turn, for {event}, was cancelled)\n"),
        Some(TurnOutcome::Failed { event, code, message, .. }) => {
            format!("(the last turn, for {event}, failed: {code}: {message})\n")
        }
        Some(outcome @ TurnOutcome::Rewind { .. }) => {
            format!("(the conversation was taken back by {} turns)\n", outcome.taken_back().len())
        }
        Some(outcome) => match outcome.event() {
            Some(event) => format!("(the last turn, for {event}, was interrupted)\n"),
            None => "(the last turn was interrupted)\n".to_owned(),
        },
        None => String::new(),
    };
    // Writing to a string does not fail.
    _ = match (&conversation.open_turn, status) {
        (Some(turn), _) if !conversation.waits.is_empty() => {
            let page = waits::page(&conversation.waits);
            write!(
                text,
                "(the turn {turn} waits for a decision: `goondan instance decide` takes it)\n{}",
                page.as_str()
            )
        }
        (Some(turn), InstanceStatus::Open) => writeln!(text, "(the turn {turn} is running)"),
        (Some(turn), _) => writeln!(text, "(the turn {turn} is running, or was interrupted: the next run closes it)"),
        (None, InstanceStatus::Open) => writeln!(text, "(a process has the conversation open)"),
        (None, _) => Ok(()),
    };
    text
}

/// One item of the printed conversation.
enum Item<'a> {
    Message(&'a Message),
    /// The cost of the turn whose messages precede it.
    Cost(&'a TurnCost),
}

/// Returns the messages, with the cost of each turn after its last message.
fn in_order<'a>(messages: &'a [Arc<Message>], costs: &'a [TurnCost]) -> Vec<Item<'a>> {
    let turns: Vec<_> = messages.chunk_by(|message, next| !begins_turn(message, next)).collect();
    let mut items = Vec::new();
    for (index, turn) in turns.iter().enumerate() {
        items.extend(turn.iter().map(|message| Item::Message(message)));
        let next = turns.get(index + 1).and_then(|next| next.first()).map(|input| input.created_at());
        items.extend(cost::of(turn, next, costs).map(Item::Cost));
    }
    items
}

/// Returns whether `next` is the input of a turn. One that an extension has replaced has the extension as its source.
fn begins_turn(message: &Message, next: &Message) -> bool {
    matches!(next.source(), Source::User) || next.role() == Role::User && next.turn() != message.turn()
}

fn line(item: &Item<'_>) -> Result<String> {
    let object = match item {
        Item::Message(message) => serde_json::to_string(message)?,
        Item::Cost(cost) => serde_json::json!({ "turn": cost }).to_string(),
    };
    Ok(object + "\n")
}

fn paragraph(item: &Item<'_>, limit: usize) -> String {
    let message = match item {
        Item::Message(message) => message,
        Item::Cost(cost) => return format!("{cost}\n"),
    };
    let mut text = format!("{}  {}\n", message.created_at(), message.role().as_str());
    for part in message::parts(message) {
        // Writing to a string does not fail.
        truncate(&part, limit).lines().for_each(|line| _ = writeln!(text, "  {line}"));
    }
    text
}

fn truncate(text: &str, limit: usize) -> String {
    let mut characters = text.char_indices();
    match characters.nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} more characters; --full shows all)", &text[..end], 1 + characters.count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(truncate("äöü", 3), "äöü");
        assert_eq!(truncate("äöüß", 3), "äöü… (1 more characters; --full shows all)");
    }
}
