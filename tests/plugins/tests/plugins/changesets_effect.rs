//! LEGACY-CHANGESET-04: from when on a conversation runs with what it has committed.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use goondan::agent::Instance;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::store::MemoryStore;
use goondan::{Agent, BoxFuture, Error, Result, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::changesets::Repository;
use crate::linkage::WithPlugin;

/// A model that follows the script of the turn, and records the instructions and tools of each of its steps.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    script: Option<Arc<ScriptedModel>>,
    steps: Vec<String>,
}

impl Model for Recorder {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        let mut recorded = self.0.lock().unwrap();
        let waits = request.tools().any(|tool| tool.name.as_str() == "wait__seconds");
        recorded.steps.push(format!("{}{}", request.system().unwrap().trim(), if waits { ", waits" } else { "" }));
        let script = recorded.script.clone().unwrap();
        Box::pin(async move { script.generate(request, deltas).await })
    }
}

/// An agent that is made of the files in the directory `bundle` of a repository.
struct Fixture {
    repository: Repository,
    model: Recorder,
    agent: Agent,
    instance: Instance,
}

impl Fixture {
    async fn new() -> Self {
        let repository = Repository::new();
        repository.write("bundle/prompt.md", "old\n");
        repository.write("bundle/window", "40");
        repository.commit();
        let model = Recorder::default();
        let agent = read(&repository.path("bundle"), &model).unwrap();
        let instance = agent.instance("test").await.unwrap();
        Self { repository, model, agent, instance }
    }

    /// Runs a turn of which the model makes these calls in its first step. Returns their results and the steps.
    async fn turn(&self, calls: Vec<(&str, Value)>) -> (Vec<Value>, Vec<String>) {
        let script = ScriptedModel::new([ScriptItem::calls(calls), ScriptItem::say("done").repeat()]);
        self.model.0.lock().unwrap().script = Some(Arc::new(script));
        let before = self.instance.messages().await.unwrap().len();
        self.instance.run("go").await.unwrap();
        let messages = self.instance.messages().await.unwrap();
        let results = messages.iter().skip(before).filter(|message| message.role().as_str() == "tool");
        let results = results.map(|message| serde_json::from_str(&message.text()).unwrap()).collect();
        (results, std::mem::take(&mut self.model.0.lock().unwrap().steps))
    }

    /// Opens a changeset, and changes a file in it. Returns its id.
    async fn change(&self, file: &str, text: &str) -> Value {
        let (opened, _) = self.turn(vec![("changesets__open", json!({}))]).await;
        fs::write(Path::new(opened[0]["workdir"].as_str().unwrap()).join(file), text).unwrap();
        opened[0]["changesetId"].clone()
    }

    /// Commits changesets, and runs another turn. The program serves the reloads by `reload`.
    async fn commit<T>(&self, ids: &[&Value], reload: impl AsyncFnMut() -> Result<T>) -> (Vec<Value>, Vec<String>) {
        let commits = ids.iter().map(|id| ("changesets__commit", json!({ "changesetId": id, "message": "change" })));
        let turns = async {
            let (results, mut steps) = self.turn(commits.collect()).await;
            steps.push("next turn".to_owned());
            steps.extend(self.turn(vec![("changesets__list", json!({}))]).await.1);
            (results, steps)
        };
        tokio::select! {
            () = self.agent.reload_requests().unwrap().serve(reload, |_| ()) => panic!("the agent lives"),
            outcome = turns => outcome,
        }
    }

    async fn reload(&self) -> Result<()> {
        let read = read(&self.repository.path("bundle"), &self.model)?;
        self.agent.reload_at_next_step(&read).await.map(drop)
    }
}

/// Reads the agent, as a program without a bundle may do it.
fn read(bundle: &Path, model: &Recorder) -> Result<Agent> {
    let window: u64 = fs::read_to_string(bundle.join("window"))?.trim().parse()?;
    let mut agent = Agent::builder("assistant")
        .model(model.clone())
        .store(MemoryStore::new().with_directories())
        .system(fs::read_to_string(bundle.join("prompt.md"))?)
        .bundle_root(bundle)
        .plugin("message-window", "message-window", json!({ "maxMessages": window }))
        .plugin("changesets", "changesets", json!({}));
    if bundle.join("waits").exists() {
        agent = agent.plugin("wait", "wait", json!({}));
    }
    agent.build()
}

fn effects(results: &[Value]) -> Vec<&str> {
    results.iter().map(|result| result["effect"].as_str().unwrap()).collect()
}

#[both_linkages]
#[covers("LEGACY-CHANGESET-04", "LEGACY-LIVECONFIG-02")]
async fn the_step_after_the_commit_is_that_of_the_committed_bundle() {
    let fixture = Fixture::new().await;
    let prompt = fixture.change("bundle/prompt.md", "new\n").await;
    let tool = fixture.change("bundle/waits", "").await;
    let (results, steps) = fixture.commit(&[&prompt], async || fixture.reload().await).await;
    assert_eq!(effects(&results), ["nextStep"], "{results:?}");
    assert_eq!(steps, ["old", "new", "next turn", "new", "new"]);
    let (results, steps) = fixture.commit(&[&tool], async || fixture.reload().await).await;
    assert_eq!(effects(&results), ["nextStep"], "{results:?}");
    assert_eq!(steps, ["new", "new, waits", "next turn", "new, waits", "new, waits"]);
}

#[both_linkages]
#[covers("LEGACY-CHANGESET-04")]
async fn two_commits_of_one_step_have_their_effect_in_the_next() {
    let fixture = Fixture::new().await;
    let (prompt, tool) = (fixture.change("bundle/prompt.md", "new\n").await, fixture.change("bundle/waits", "").await);
    let (results, steps) = fixture.commit(&[&prompt, &tool], async || fixture.reload().await).await;
    assert_eq!(effects(&results), ["nextStep", "nextStep"], "{results:?}");
    assert_eq!(steps[..2], ["old", "new, waits"]);
}

#[both_linkages]
#[covers("LEGACY-CHANGESET-04")]
async fn a_changed_layer_around_the_turn_has_its_effect_in_the_next_turn() {
    let fixture = Fixture::new().await;
    let id = fixture.change("bundle/window", "60").await;
    fixture.repository.write("bundle/prompt.md", "new\n");
    let (results, steps) = fixture.commit(&[&id], async || fixture.reload().await).await;
    assert_eq!(effects(&results), ["nextTurn"], "{results:?}");
    assert_eq!(steps, ["old", "old", "next turn", "new", "new"]);
}

#[both_linkages]
async fn a_bundle_that_cannot_be_loaded_has_no_effect_and_the_model_reads_why() {
    let fixture = Fixture::new().await;
    let id = fixture.change("bundle/prompt.md", "new\n").await;
    let (results, steps) = fixture.commit(&[&id], async || Err::<(), _>(Error::msg("it is damaged"))).await;
    assert_eq!((&results[0]["status"], effects(&results)), (&json!("ok"), vec!["none"]));
    assert_eq!(results[0]["noEffectBecause"], "it is damaged");
    assert_eq!(steps, ["old", "old", "next turn", "old", "old"]);
}

#[both_linkages]
async fn a_program_that_makes_no_reload_does_not_hold_the_tool() {
    let fixture = Fixture::new().await;
    let id = fixture.change("bundle/prompt.md", "new\n").await;
    let (results, _) = fixture.commit(&[&id], async || Ok(())).await;
    assert_eq!(results[0]["noEffectBecause"], "the program made no reload");
}
