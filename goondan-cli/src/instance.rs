//! Owns `goondan instance`: the conversations that are stored, shown and deleted from outside.

mod repair;
mod transfer;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan::store::{StoredInstance, state_root, workspace_id};
use goondan::{
    AgentName, Error, ErrorCode, FileStore, InstanceId, InstanceKey, Message, Part, Result, Source, ToolOutput,
};
use serde::Serialize;

pub(crate) use repair::repair;
pub(crate) use transfer::{export, import};

use crate::args::{DeleteArgs, ListArgs, Place, ShowArgs, Which};
use crate::cost::{self, Cost};

/// How many characters of a text are shown unless all of it is asked for.
const FOLDED: usize = 400;

/// An instance with the workspace that it lies in.
#[derive(Serialize)]
struct Listed {
    workspace: String,
    #[serde(flatten)]
    instance: StoredInstance,
}

pub(crate) fn list(args: &ListArgs) -> Result<()> {
    let mut all = Vec::new();
    for workspace in workspaces(&args.place)? {
        let instances = store(&args.place, &workspace)?.instances()?;
        all.extend(instances.into_iter().map(|instance| Listed { workspace: workspace.clone(), instance }));
    }
    let text = if args.json {
        serde_json::to_string(&all)? + "\n"
    } else if all.is_empty() {
        "No conversation is stored here.\n".to_owned()
    } else {
        table(&all)
    };
    crate::print(&text)
}

fn table(all: &[Listed]) -> String {
    let width = |text: fn(&Listed) -> usize, title: &str| all.iter().map(text).max().unwrap_or(0).max(title.len());
    let workspace = width(|listed| listed.workspace.chars().count(), "WORKSPACE");
    let instance = width(|listed| listed.instance.id.to_string().chars().count(), "INSTANCE");
    let mut table = format!("{:<workspace$}  {:<instance$}  LAST TURN\n", "WORKSPACE", "INSTANCE");
    for listed in all {
        let (id, updated) = (listed.instance.id.to_string(), listed.instance.updated_at);
        // Writing into a string does not fail.
        _ = writeln!(table, "{:<workspace$}  {id:<instance$}  {updated}", listed.workspace);
    }
    table
}

pub(crate) fn show(args: &ShowArgs) -> Result<()> {
    let (store, id) = find(&args.which)?;
    let conversation = store.read(&id)?;
    let costs = cost::of_turns(&store.instance_dir(&id));
    let limit = if args.full { usize::MAX } else { FOLDED };
    let mut text = String::new();
    for told in in_order(&conversation.messages, &costs) {
        text.push_str(&if args.json { line(&told)? } else { paragraph(&told, limit) });
    }
    if let (Some(turn), false) = (&conversation.open_turn, args.json) {
        _ = writeln!(text, "(the turn {turn} is running, or was interrupted: the next run closes it)");
    }
    crate::print(&text)
}

/// Something to show of a conversation.
enum Told<'a> {
    Message(&'a Message),
    /// What the turn before it cost.
    Cost(&'a Cost),
}

/// The messages, and what each turn cost after the last message that is left of it.
fn in_order<'a>(messages: &'a [Arc<Message>], costs: &'a [Cost]) -> Vec<Told<'a>> {
    let turns: Vec<_> = messages.chunk_by(|_, next| !matches!(next.source(), Source::User)).collect();
    let mut told = Vec::new();
    for (index, turn) in turns.iter().enumerate() {
        told.extend(turn.iter().map(|message| Told::Message(message)));
        let next = turns.get(index + 1).and_then(|next| next.first()).map(|input| input.created_at());
        told.extend(cost::of(turn, next, costs).map(Told::Cost));
    }
    told
}

fn line(told: &Told<'_>) -> Result<String> {
    let object = match told {
        Told::Message(message) => serde_json::to_string(message)?,
        Told::Cost(cost) => serde_json::json!({ "turn": cost }).to_string(),
    };
    Ok(object + "\n")
}

fn paragraph(told: &Told<'_>, limit: usize) -> String {
    let message = match told {
        Told::Message(message) => message,
        Told::Cost(cost) => return format!("{cost}\n"),
    };
    let mut text = format!("{}  {}\n", message.created_at(), message.role().as_str());
    for line in said(message) {
        // Writing into a string does not fail.
        fold(&line, limit).lines().for_each(|line| _ = writeln!(text, "  {line}"));
    }
    text
}

/// What a message says, part by part.
pub(crate) fn said(message: &Message) -> Vec<String> {
    match message.content().parts() {
        [] => vec![message.text().into_owned()],
        parts => parts.iter().map(part).collect(),
    }
}

fn part(part: &Part) -> String {
    match part {
        Part::Text(text) => text.text.clone(),
        Part::ToolCall(call) => format!("→ {} {}", call.tool_name, call.input),
        Part::ToolResult(result) => match &result.output {
            ToolOutput::Text(text) => format!("← {} {text}", result.tool_name),
            ToolOutput::Json(value) => format!("← {} {value}", result.tool_name),
        },
        Part::Other(other) => serde_json::json!(other).to_string(),
    }
}

fn fold(text: &str, limit: usize) -> String {
    let mut characters = text.char_indices();
    match characters.nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} more characters; --full shows all)", &text[..end], 1 + characters.count()),
    }
}

pub(crate) fn delete(args: &DeleteArgs) -> Result<()> {
    let (store, id) = find(&args.which)?;
    if !args.yes && !confirmed(&id)? {
        return Err(Error::new(ErrorCode::USAGE, format!("`{id}` was not deleted"))
            .suggest("answer `yes`, or say `--yes` where nobody can be asked"));
    }
    store.delete(&id)?;
    crate::print(&format!("Deleted `{id}`.\n"))
}

fn confirmed(id: &InstanceId) -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    print!(
        "Delete the conversation `{id}` with all that its extensions and tools keep? Nothing brings it back. [yes/no] "
    );
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

/// The instance that the user means, and the store that it lies in.
fn find(Which { instance, place }: &Which) -> Result<(FileStore, InstanceId)> {
    let id = parse(instance)?;
    let mut found = Vec::new();
    for workspace in workspaces(place)? {
        let store = store(place, &workspace)?;
        if store.instance_dir(&id).is_dir() {
            found.push((workspace, store));
        }
    }
    let names: Vec<_> = found.iter().map(|(workspace, _)| workspace.as_str()).collect();
    match found.len() {
        0 => Err(Error::new(ErrorCode::STORE_NOT_FOUND, format!("there is no instance `{id}` here"))
            .suggest("`goondan instance list` shows those that there are")),
        1 => found.pop().map(|(_, store)| (store, id)).ok_or_else(|| Error::msg("one was found")),
        _ => Err(Error::new(
            ErrorCode::USAGE,
            format!("several workspaces have an instance `{id}`: {}", names.join(", ")),
        )
        .suggest("say which one by `--workspace NAME`")),
    }
}

fn parse(name: &str) -> Result<InstanceId> {
    let (agent, key) = name.split_once(':').ok_or_else(|| {
        Error::new(ErrorCode::USAGE, format!("`{name}` is not the name of an instance"))
            .suggest("write `<agent>:<key>`, as `goondan instance list` does")
    })?;
    Ok(InstanceId { agent: AgentName::new(agent)?, key: InstanceKey::new(key)? })
}

/// The workspaces to look into: the one that is named, or all.
fn workspaces(place: &Place) -> Result<Vec<String>> {
    if let Some(name) = &place.workspace {
        return Ok(vec![workspace_id(name)]);
    }
    let directory = root(place)?;
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(&directory, error)),
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<io::Result<Vec<_>>>().map_err(|error| unreadable(&directory, error))?;
    names.sort();
    Ok(names)
}

fn store(place: &Place, workspace: &str) -> Result<FileStore> {
    FileStore::open(root(place)?.join(workspace))
}

fn root(place: &Place) -> Result<PathBuf> {
    Ok(state_root(place.state_root.as_deref())?.join("workspaces"))
}

fn unreadable(directory: &Path, error: io::Error) -> Error {
    Error::new(ErrorCode::IO, format!("cannot read {}", directory.display())).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_folded_between_characters() {
        assert_eq!(fold("äöü", 3), "äöü");
        assert_eq!(fold("äöüß", 3), "äöü… (1 more characters; --full shows all)");
    }

    #[test]
    fn an_instance_is_named_by_agent_and_key() {
        let id = parse("main:user:1").unwrap();
        assert_eq!((id.agent.as_str(), id.key.as_str()), ("main", "user:1"));
        for wrong in ["main", "", ":", "main:", "Not Legal:x"] {
            assert!(parse(wrong).unwrap_err().code().is_configuration(), "{wrong}");
        }
    }
}
