//! Lets an agent change a repository in a work tree of its own, and commit the whole change or none of it.
//!
//! This file has the extension `changesets`, and `live_config` the one whose changesets a person commits, through
//! `review`. `config` has the config of both, `author` the author of their commits, `changeset` the changesets,
//! `commit` the conditions of one and its end, `check_tree` and `check` the command that judges it, and `effect` the
//! reload that follows. `shown` presents their calls to people.
//!
//! git does the work, by way of `command`: `git` is the repository of the person, `filters` the programs it may run
//! there, and `objects` and `blobs` are its trees, commits and contents, which git sees without its config. `files`
//! makes a tree of a directory and back, with `walk`, which looks at one, `ignored`, `listing`, which knows what was
//! there, and `place`, which writes. `lock` keeps programs apart.
// LEGACY-CHANGESET

mod author;
mod blobs;
mod changeset;
mod check;
mod check_tree;
mod command;
mod commit;
mod config;
mod effect;
mod files;
mod filters;
mod git;
mod ignored;
mod listing;
mod live_config;
mod lock;
mod objects;
mod place;
mod review;
mod shown;
mod walk;

pub use author::Author;
pub use commit::{Committed, Problem, Status, Summary};
pub use config::Config;
pub use live_config::LiveConfigExtension;
pub use review::Review;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use goondan::decision::{OnInput, Question};
use goondan::event::{Shown, WorktreeMounted};
use goondan::prelude::*;
use goondan::{Map, Value};
use serde::Serialize;

use changeset::{Changeset, Changesets};
use commit::reference;
use effect::Effect;

/// The extension `changesets`.
#[derive(Debug)]
pub struct ChangesetsExtension {
    api: ExtensionApi,
    recommended_files: Vec<String>,
    /// Whether a person decides about commits.
    asks: bool,
    /// The tree of the commit that runs next, if a person was shown it.
    shown: Mutex<Option<String>>,
    /// `None` when nothing should be run.
    changesets: Option<Changesets>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct OpenInput {
    /// Why the repository is changed.
    reason: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CommitInput {
    /// The id that `changesets__open` returned. Unless it is given, the only open changeset of this conversation.
    changeset_id: Option<String>,
    /// The message of the commit. Unless it is given, the reason of the changeset.
    message: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DiscardInput {
    /// The id that `changesets__open` returned. Unless it is given, the only open changeset of this conversation.
    changeset_id: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Opened {
    changeset_id: String,
    base_ref: String,
    workdir: PathBuf,
    hint: Hint,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Hint {
    bundle_root_in_workdir: PathBuf,
    recommended_files: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Listed {
    changesets: Vec<ListedChangeset>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedChangeset {
    changeset_id: String,
    /// The conversation that opened it: only that one can commit or discard it.
    conversation: String,
    workdir: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Changes of a repository, which are committed as a whole.
#[goondan::extension(name = "changesets", guard)]
impl ChangesetsExtension {
    #[init]
    async fn new(api: ExtensionApi, config: Config, ctx: InitContext) -> Result<Self> {
        let (asks, recommended_files) = (config.ask, config.recommended_files.clone());
        let changesets = Changesets::of(&api, &ctx, config).await?;
        let this = Self { api, recommended_files, asks, shown: Mutex::default(), changesets };
        let own = this.changesets.as_ref().map(Changesets::own).transpose()?;
        own.iter().flatten().for_each(|changeset| this.tell(changeset));
        Ok(this)
    }

    /// Opens a changeset: a copy of the repository in a directory of its own, in which files can be changed freely.
    /// Nothing outside of it changes before `changesets__commit`.
    #[tool(name = "changesets__open", effect = once, present = "{reason}")]
    async fn open(&self, input: OpenInput) -> Result<Opened> {
        let changesets = Changesets::to_run(self.changesets.as_ref())?;
        let (changeset, head) = changesets.open(input.reason).await?;
        self.tell(&changeset);
        let workdir = changeset.work_tree().to_owned();
        let hint = Hint {
            bundle_root_in_workdir: workdir.join(&changesets.bundle),
            recommended_files: self.recommended_files.clone(),
        };
        Ok(Opened { changeset_id: changeset.id, base_ref: reference(&head), workdir, hint })
    }

    /// Commits all changes of a changeset to the repository, and closes it. With any status but `ok` nothing is
    /// committed and the changeset stays open: correct what `error` says, and commit again. If you are made of files
    /// of the repository, `effect` says from when on their changes apply to you: `nextStep`, `nextTurn` or `none`.
    #[tool(name = "changesets__commit", effect = once, timeout = "1h", present = shown::commit)]
    async fn commit(&self, input: CommitInput) -> Result<Committed> {
        let changesets = Changesets::to_run(self.changesets.as_ref())?;
        let changeset = changesets.choose(input.changeset_id.as_deref())?;
        let approved = self.shown().take();
        let mut answer = changesets.commit(changeset, input.message, approved.as_deref()).await?;
        if answer.status == Status::Ok {
            if let Some(diff) = answer.diff.take() {
                self.api.events().show(Shown::difference(diff));
            }
            if changesets.is_own {
                answer.effect = Some(Effect::of_reload(&self.api, &answer.changeset_id).await);
            }
            self.api.events().emit("changeset.committed", (answer.clone(),));
        }
        Ok(answer)
    }

    /// Closes a changeset and deletes all its changes.
    #[tool(name = "changesets__discard", effect = once, present = "{changesetId}")]
    async fn discard(&self, input: DiscardInput) -> Result<()> {
        let changesets = Changesets::to_run(self.changesets.as_ref())?;
        let _lock = changesets.lock().await?;
        changesets.remove(&changesets.choose(input.changeset_id.as_deref())?).await
    }

    /// Asks the person about a commit if the config says so, and shows its changes to the person who is asked.
    /// The tree stands for the whole, also for the parts that are left out of a long difference: another one is asked
    /// about again.
    #[middleware(toolCall, priority = 1200)]
    async fn preview(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let is_commit = ctx.tool_name() == "changesets__commit";
        if is_commit && self.asks && ctx.decision::<Value>()?.is_none() {
            ctx.ask(Question::new("Commit these changes?").on_input(OnInput::Reject));
        }
        let mut shown = None;
        if is_commit && ctx.is_asked() {
            match self.previewed(ctx.args()).await {
                Ok((tree, difference)) => {
                    ctx.show(Shown::note(format!("It commits the tree {tree}.")));
                    ctx.show(Shown::difference(difference));
                    shown = Some(tree);
                }
                Err(error) => ctx.show(Shown::note(format!("What it commits is not known: {}", error.message()))),
            }
        }
        if is_commit {
            *self.shown() = shown;
        }
        next.run(ctx).await
    }

    /// Lists the open changesets.
    #[tool(name = "changesets__list", effect = read)]
    async fn list(&self) -> Result<Listed> {
        let changesets = Changesets::to_run(self.changesets.as_ref())?;
        let listed = changesets.all()?.into_iter().map(|(id, description)| ListedChangeset {
            workdir: changesets.work_tree(&id),
            changeset_id: id,
            conversation: description.owner,
            reason: description.reason,
        });
        Ok(Listed { changesets: listed.collect() })
    }
}

impl ChangesetsExtension {
    fn shown(&self) -> MutexGuard<'_, Option<String>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn previewed(&self, args: &Map<String, Value>) -> Result<(String, String)> {
        let changesets = Changesets::to_run(self.changesets.as_ref())?;
        let changeset = changesets.choose(args.get("changesetId").and_then(Value::as_str))?;
        let _lock = changesets.lock().await?;
        changeset.preview().await
    }

    /// Tells other extensions where a changeset can be written.
    fn tell(&self, changeset: &Changeset) {
        let (path, changeset_id) = (changeset.work_tree().to_owned(), Some(changeset.id.clone()));
        self.api.events().emit(WorktreeMounted::NAME, (WorktreeMounted::new(path, changeset_id),));
    }
}
