//! The programs of `docs/recipes/teams.md`.

use basics::subagents::Subagents;
use goondan::agent::{AgentBuilder, LocalRouter};
use goondan::event::AgentEvent;
use goondan::model::Model;
use goondan::{Agent, Result, json};
use plan::Plan;

/// Lets an agent read each file, all at once. If one fails, its error is in place of its answer.
async fn review(model: impl Model + Clone, files: &str) -> Result<String> {
    let team = LocalRouter::new();
    let reviewer =
        Agent::builder("reviewer").model(model.clone()).system("Name the worst fault of the file.").build()?;
    team.add(&reviewer);
    let lead = Agent::builder("lead")
        .model(model)
        .extension::<Subagents>(json!({ "agents": { "reviewer": "reviews one file" } }))
        .router(team)
        .build()?;
    Ok(lead.instance("review").await?.run(format!("Review these files: {files}")).await?.text().into_owned())
}

/// Whatever an agent of the team is told, and by whom, it deletes nothing.
#[goondan::extension(name = "no-deletes", guard)]
pub mod no_deletes {
    use goondan::prelude::*;

    #[middleware(toolCall)]
    async fn review(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if ctx.tool_name().ends_with("delete") {
            return Err(Error::new("DENIED", "nothing is deleted here"));
        }
        next.run(ctx).await
    }
}

fn team(member: impl Fn(&str) -> AgentBuilder) -> Result<[Agent; 2]> {
    let guarded = |name| member(name).extension::<no_deletes::Extension>(json!({}));
    let boss = guarded("boss").extension::<Subagents>(json!({ "agents": { "worker": "works" } }));
    Ok([boss.build()?, guarded("worker").build()?])
}

/// Makes a planner, which keeps a list of what is to be done, and gives the work out.
fn planner(model: impl Model + Clone, team: &LocalRouter) -> Result<[Agent; 3]> {
    let member = |name, system| Agent::builder(name).model(model.clone()).system(system).router(team.clone());
    let researcher = member("researcher", "Find facts, and name their sources.").build()?;
    let critic = member("critic", "Say what is wrong with the text.").build()?;
    let agents = json!({ "researcher": "finds facts", "critic": "judges a text" });
    let planner = member("planner", "Plan the report, give out the work, and write it.")
        .extension::<Plan>(json!({}))
        .extension::<Subagents>(json!({ "agents": agents }))
        .build()?;
    [&planner, &researcher, &critic].into_iter().for_each(|agent| team.add(agent));
    Ok([planner, researcher, critic])
}

/// Works on a job, or goes on with it if an earlier process was killed.
async fn work(lead: &Agent, job: &str, task: &str) -> Result<String> {
    let input = AgentEvent::input(task).with_id(job);
    let result = lead.instance(job).await?.run(input).await?;
    Ok(result.text().into_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use goondan::conversation::ToolCallPart;
    use goondan::model::{DeltaSink, ModelRequest, ModelResponse};
    use goondan::store::FileStore;
    use goondan::{BoxFuture, Error, Value};
    use tokio::sync::Notify;

    use super::*;

    /// The tool that gives tasks.
    const RUN: &str = "subagents__run";

    enum Answer {
        Says(String),
        Calls(&'static str, Value),
        Fails,
        Hangs,
    }
    use Answer::{Calls, Fails, Hangs, Says};

    /// The model of all agents: it plays an answer to the newest message, and to whether its agent gives tasks.
    #[derive(Clone)]
    struct Played {
        plays: fn(&str, bool) -> Answer,
        asked: Arc<Mutex<Vec<String>>>,
        hangs: Arc<Notify>,
    }

    impl Played {
        fn new(plays: fn(&str, bool) -> Answer) -> Self {
            Self { plays, asked: Arc::default(), hangs: Arc::default() }
        }
    }

    impl Model for Played {
        fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
            // The plan is at the end of each request.
            let texts = request.messages().map(|message| message.content.text().into_owned());
            let newest = texts.filter(|text| !text.starts_with("<plan>")).last().unwrap_or_default();
            let leads = request.tools().any(|tool| tool.name.as_str() == RUN);
            let answer = (self.plays)(&newest, leads);
            self.asked.lock().unwrap().push(newest);
            Box::pin(async move {
                match answer {
                    Says(text) => Ok(ModelResponse::text(text)),
                    Calls(tool, args) => {
                        Ok(ModelResponse::content([ToolCallPart::new("call".into(), tool, args).into()]))
                    }
                    Fails => Err(Error::new("E_TIRED", "too tired")),
                    Hangs => {
                        self.hangs.notify_one();
                        std::future::pending().await
                    }
                }
            })
        }
    }

    fn tasks(tasks: &[(&str, &str)]) -> Answer {
        let tasks: Vec<_> = tasks.iter().map(|(agent, task)| json!({ "agent": agent, "task": task })).collect();
        Calls(RUN, json!({ "tasks": tasks }))
    }

    /// Returns the result of each task, which the model has repeated.
    fn results(answer: &str) -> Vec<Value> {
        let answer: Value = json::from_str(answer).unwrap();
        answer["results"].as_array().unwrap().clone()
    }

    #[tokio::test]
    async fn of_eight_reviews_one_fails() {
        let model = Played::new(|newest, leads| match newest {
            "Review these files: all" => {
                tasks(&["a", "b", "c", "d", "e", "f", "g", "h"].map(|file| ("reviewer", file)))
            }
            "d" => Fails,
            newest if leads => Says(newest.to_owned()),
            file => Says(format!("{file} is too long")),
        });
        let results = results(&review(model, "all").await.unwrap());
        assert_eq!(results.len(), 8);
        assert_eq!(results[7]["answer"], "h is too long");
        assert!(results[3]["error"].as_str().unwrap().contains("too tired"), "{}", results[3]);
    }

    static HAS_DELETED: AtomicBool = AtomicBool::new(false);

    #[goondan::extension(name = "files")]
    mod files {
        use goondan::prelude::*;

        /// Deletes everything.
        #[tool]
        async fn delete() -> Result<()> {
            super::HAS_DELETED.store(true, super::Ordering::Relaxed);
            Ok(())
        }
    }

    #[tokio::test]
    async fn the_guard_covers_the_worker_too() {
        let model = Played::new(|newest, leads| match newest {
            "clean up" if leads => tasks(&[("worker", "clean up")]),
            "clean up" => Calls("files__delete", json!({})),
            newest => Says(newest.to_owned()),
        });
        let router = LocalRouter::new();
        let member = |name: &str| {
            let agent = Agent::builder(name).model(model.clone()).router(router.clone());
            agent.extension::<files::Extension>(json!({}))
        };
        let [boss, worker] = team(member).unwrap();
        router.add(&worker);
        let answer = boss.instance("main").await.unwrap().run("clean up").await.unwrap().text().into_owned();
        assert!(answer.contains("nothing is deleted here"), "{answer}");
        assert!(!HAS_DELETED.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn the_planner_gives_the_work_out() {
        let model = Played::new(|newest, leads| match newest {
            "Write about bees." => Calls("plan__write", json!({ "items": [{ "text": "facts", "state": "active" }] })),
            "what do bees do?" => Says("they dance".to_owned()),
            "is it good?" => Says("it is short".to_owned()),
            newest if leads && newest.contains("they dance") => Says(newest.to_owned()),
            _ => tasks(&[("researcher", "what do bees do?"), ("critic", "is it good?")]),
        });
        let team = LocalRouter::new();
        let [planner, ..] = &planner(model, &team).unwrap();
        let answer = planner.instance("bees").await.unwrap().run("Write about bees.").await.unwrap();
        assert_eq!(results(&answer.text())[1]["answer"], "it is short");
        let messages = planner.instance("bees").await.unwrap().messages().await.unwrap();
        assert!(messages[1].content().parts()[0].to_string().contains("plan__write"), "{messages:?}");
    }

    #[tokio::test]
    async fn a_job_goes_on_with_what_its_children_have_done() {
        let directory = tempfile::tempdir().unwrap();
        let agents = |model: &Played| {
            let (team, store) = (LocalRouter::new(), FileStore::open(directory.path()).unwrap());
            let member = |name| Agent::builder(name).model(model.clone()).router(team.clone()).store(store.clone());
            let config = json!({ "agents": { "worker": "works" }, "atOnce": 1 });
            let [lead, worker] = [member("lead").extension::<Subagents>(config), member("worker")];
            let agents = [lead.build().unwrap(), worker.build().unwrap()];
            agents.iter().for_each(|agent| team.add(agent));
            agents
        };
        let first = Played::new(|newest, _| match newest {
            "go" => tasks(&[("worker", "the first half"), ("worker", "the second half")]),
            "the second half" => Hangs,
            task => Says(format!("{task} is done")),
        });
        let [lead, worker] = agents(&first);
        tokio::select! {
            answer = work(&lead, "job-1", "go") => panic!("{answer:?}"),
            () = first.hangs.notified() => {}
        }
        lead.close().await.unwrap();
        worker.close().await.unwrap();

        let second = Played::new(|newest, leads| match newest {
            newest if leads => Says(newest.to_owned()),
            task => Says(format!("{task} is done")),
        });
        let [lead, _worker] = &agents(&second);
        let answer = work(lead, "job-1", "go").await.unwrap();
        let done: Vec<_> = results(&answer).iter().map(|done| done["answer"].clone()).collect();
        assert_eq!(done, ["the first half is done", "the second half is done"]);
        // Of the children, only the second was asked.
        assert_eq!(second.asked.lock().unwrap()[..1], ["the second half"]);
        assert_eq!(second.asked.lock().unwrap().len(), 2);
        assert_eq!(work(lead, "job-1", "go").await.unwrap(), answer, "it is answered once");
    }
}
