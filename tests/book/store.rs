//! The store in `docs/stores.md`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use goondan::conversation::{Message, MessageEvent};
use goondan::decision::Decision;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::name::{EventId, ExtensionName, ToolCallId, TurnId};
use goondan::store::{
    Commit, Durability, EmittedBy, EndedTurn, EventDigest, InstanceId, Interrupted, Journal, Opened, Reached, Store,
    Suspend, TurnOutcome, TurnRecord, TurnStart,
};
use goondan::{Agent, BoxFuture, Error, ErrorCode, Result, Value, json};
use serde::{Deserialize, Serialize};

/// A row of the table: what is committed of a conversation, and its open turn.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Row {
    messages: Vec<Message>,
    state: BTreeMap<ExtensionName, Value>,
    ended: Vec<EndedTurn>,
    open: Option<OpenTurn>,
}

/// A turn that is not committed: its event, and the records since it began.
#[derive(Clone, Serialize, Deserialize)]
struct OpenTurn {
    turn: TurnId,
    event: Option<EventId>,
    digest: Option<EventDigest>,
    records: Vec<TurnRecord>,
}

impl OpenTurn {
    /// Returns what the runtime needs to go on.
    fn interrupted(self) -> Interrupted {
        let mut turn = Interrupted::new(self.turn);
        (turn.event, turn.digest) = (self.event, self.digest);
        self.records.into_iter().for_each(|record| turn.add(record));
        turn
    }
}

/// Stands for a table of a database: JSON by key. A write of a row is atomic.
#[derive(Clone, Default)]
struct Table(Arc<Mutex<Rows>>);

#[derive(Default)]
struct Rows {
    rows: HashMap<String, String>,
    /// The keys of the rows that somebody has.
    locked: HashSet<String>,
    /// Whether the database can be reached.
    is_away: bool,
}

impl Table {
    async fn read(&self, key: &str) -> Result<Row> {
        match self.0.lock().unwrap().rows.get(key) {
            Some(text) => Ok(serde_json::from_str(text)?),
            None => Ok(Row::default()),
        }
    }

    async fn write(&self, key: &str, row: &Row) -> Result<()> {
        let mut table = self.0.lock().unwrap();
        if table.is_away {
            return Err(Error::new(ErrorCode::STORE_UNAVAILABLE, "the database does not answer").retryable(true));
        }
        table.rows.insert(key.to_owned(), serde_json::to_string(row)?);
        Ok(())
    }
}

/// Keeps each conversation in a row of a table.
#[derive(Clone, Default)]
struct TableStore {
    table: Table,
}

impl Store for TableStore {
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        Box::pin(async move {
            let key = instance.to_string();
            if !self.table.0.lock().unwrap().locked.insert(key.clone()) {
                return Err(Error::new(ErrorCode::STORE_LOCKED, format!("the instance `{instance}` is open already")));
            }
            // From here on, dropping the journal gives the row back.
            let mut journal = Box::new(RowJournal { table: self.table.clone(), key, row: Row::default() });
            journal.row = self.table.read(&journal.key).await?;
            let row = journal.row.clone();
            let mut opened = Opened::new(PathBuf::from("/nowhere"), journal);
            opened.base = row.messages.into_iter().map(Arc::new).collect();
            opened.state = row.state;
            opened.interrupted = row.open.map(OpenTurn::interrupted);
            opened.newest = row.ended.last().cloned();
            Ok(opened)
        })
    }
}

/// The row of an open conversation, as it will be written next.
struct RowJournal {
    table: Table,
    key: String,
    row: Row,
}

impl RowJournal {
    fn push(&mut self, record: TurnRecord) -> Result<()> {
        let open = self.row.open.as_mut().ok_or_else(|| Error::new(ErrorCode::STORE_IO, "no turn has begun"))?;
        open.records.push(record);
        Ok(())
    }

    fn ended(&self, event: &EventId) -> Option<EndedTurn> {
        self.row.ended.iter().find(|ended| ended.outcome.event() == Some(event)).cloned()
    }
}

impl Journal for RowJournal {
    fn begin(&mut self, start: TurnStart<'_>) -> Result<()> {
        let event = start.event.map(|event| event.id.clone());
        let TurnStart { turn, digest, .. } = start;
        self.row.open = Some(OpenTurn { turn: turn.clone(), event, digest, records: Vec::new() });
        Ok(())
    }

    fn record(&mut self, event: &MessageEvent, by: Option<&EmittedBy>) -> Result<()> {
        self.push(TurnRecord::Event(event.clone(), by.cloned()))
    }

    fn start_call(&mut self, call: &ToolCallId) -> Result<()> {
        self.push(TurnRecord::Started(call.clone()))
    }

    fn reached(&mut self, what: &Reached) -> Result<()> {
        self.push(TurnRecord::Reached(what.clone()))
    }

    fn record_state(&mut self, state: &BTreeMap<ExtensionName, Value>) -> Result<()> {
        self.push(TurnRecord::State(state.clone()))
    }

    fn resume(&mut self, keep: usize) -> Result<()> {
        self.push(TurnRecord::Resumed(keep))
    }

    fn suspend<'a>(&'a mut self, turn: Suspend<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.push(TurnRecord::Suspended(turn.waits.to_vec(), turn.state.clone()))?;
            self.table.write(&self.key, &self.row).await
        })
    }

    fn decide(&mut self, decisions: &[Decision]) -> Result<()> {
        decisions.iter().try_for_each(|decision| self.push(TurnRecord::Decided(Box::new(decision.clone()))))
    }

    fn outcome<'a>(&'a self, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        Box::pin(async move { Ok(self.ended(event)) })
    }

    fn flush(&mut self, _: Durability) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.table.write(&self.key, &self.row).await })
    }

    fn commit<'a>(&'a mut self, turn: Commit<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut row = Row { open: None, ..self.row.clone() };
            row.messages = turn.conversation.messages().map(|message| Message::clone(message)).collect();
            row.state.extend(turn.state.clone());
            let taken_back = turn.outcome.map(TurnOutcome::taken_back).unwrap_or_default();
            row.ended.iter_mut().for_each(|ended| ended.rewind(taken_back));
            row.ended.extend(turn.ended());
            self.table.write(&self.key, &row).await?;
            // Only now: a commit that failed can be tried again.
            self.row = row;
            Ok(())
        })
    }
}

impl Drop for RowJournal {
    fn drop(&mut self) {
        self.table.0.lock().unwrap().locked.remove(&self.key);
    }
}

#[tokio::test]
async fn a_conversation_in_a_table_goes_on_when_the_database_is_back() {
    let store = TableStore::default();
    let script = [ScriptItem::call("nothing", json!({})), ScriptItem::say("done"), ScriptItem::say("again")];
    let agent = Agent::builder("a").model(ScriptedModel::new(script)).store(store.clone()).build().unwrap();
    let instance = agent.instance("k").await.unwrap();
    let event = goondan::event::AgentEvent::input("hello").with_id("e1");
    store.table.0.lock().unwrap().is_away = true;
    let error = instance.run(event.clone()).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::STORE_UNAVAILABLE);
    assert_eq!(instance.interrupted().await.unwrap().unwrap().id, event.id);
    store.table.0.lock().unwrap().is_away = false;
    assert_eq!(instance.run(event.clone()).await.unwrap().text(), "done");
    instance.close().await.unwrap();

    let instance = agent.instance("k").await.unwrap();
    assert!(instance.run(event).await.unwrap().is_stored());
    assert_eq!(instance.run("and now?").await.unwrap().text(), "again");
    assert_eq!(instance.messages().await.unwrap().len(), 6);
    assert!(instance.interrupted().await.unwrap().is_none());
}
