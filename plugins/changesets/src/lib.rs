//! Lets an agent change a repository in a work tree of its own, and commit the whole change or none of it.
//!
//! This file has the config and the tools, `changeset` the changesets, `git` the command that does the work, `check` the
//! command that judges it, and `effect` the reload that follows.
// LEGACY-CHANGESET

mod changeset;
mod check;
mod effect;
mod git;

use std::path::{Path, PathBuf};

use goondan::ErrorCode;
use goondan::event::{FilesChanged, WorktreeMounted};
use goondan::prelude::*;
use serde::Serialize;
use wildmatch::WildMatch;

use changeset::{Changeset, Changesets, Rebased};
use effect::{Effect, Reloads};
use git::{Author, Change, Git, Kind};

/// The config of the extension.
///
/// ```yaml
/// allowed: ["prompts/*", "goondan.yaml"]
/// check: [goondan, check, .]
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// A directory in the repository, relative to the bundle. It is the bundle's own unless it is set.
    pub repository: Option<PathBuf>,
    /// The files that a changeset may add, change and delete: paths from the top of the repository, in which `*` stands
    /// for any text and `?` for one character. All of them, unless it is set.
    pub allowed: Option<Vec<String>>,
    /// A command that must succeed before a changeset is committed. It runs in the directory of the work tree that
    /// corresponds to `repository`, and the model reads what it prints if it fails.
    pub check: Option<Vec<String>>,
    /// The largest number of seconds that the check may take.
    pub check_timeout: u64,
    /// Files that the model is told to look at.
    pub recommended_files: Vec<String>,
    /// The author of the commits.
    pub author: AuthorConfig,
}

/// The author of commits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AuthorConfig {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            repository: None,
            allowed: None,
            check: None,
            check_timeout: 120,
            recommended_files: Vec::new(),
            author: AuthorConfig::default(),
        }
    }
}

impl Default for AuthorConfig {
    fn default() -> Self {
        Self { name: "goondan".to_owned(), email: "goondan@localhost".to_owned() }
    }
}

/// The extension.
#[derive(Debug)]
pub struct ChangesetsExtension {
    api: ExtensionApi,
    config: Config,
    allowed: Option<Vec<WildMatch>>,
    /// `None` when nothing should be run.
    changesets: Option<Changesets>,
    /// Where the bundle is in the repository.
    bundle: PathBuf,
    /// Whether the agent is made of files of the repository.
    is_own: bool,
    reloads: Reloads,
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

/// The answer of `changesets__commit`, and the payload of `changeset.committed`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Committed {
    status: Status,
    changeset_id: String,
    base_ref: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
    /// None if the repository is not that of the bundle.
    #[serde(flatten)]
    effect: Option<Effect>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Problem>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Status {
    Ok,
    Rejected,
    Conflict,
    Failed,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    files_changed: Vec<String>,
    files_added: Vec<String>,
    files_deleted: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Problem {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    violated_files: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conflicting_files: Vec<String>,
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
#[goondan::extension(name = "changesets")]
impl ChangesetsExtension {
    #[init]
    async fn new(api: ExtensionApi, config: Config, ctx: InitContext) -> Result<Self> {
        let patterns = |patterns: &Vec<String>| patterns.iter().map(|pattern| WildMatch::new(pattern)).collect();
        let allowed = config.allowed.as_ref().map(patterns);
        let (bundle, reloads) = (PathBuf::new(), Reloads::default());
        let mut this = Self { api, allowed, changesets: None, bundle, is_own: false, reloads, config };
        if ctx.inspect() {
            return Ok(this);
        }
        let directory = match (ctx.bundle_root(), &this.config.repository) {
            (Some(root), Some(repository)) => root.join(repository),
            (Some(root), None) => root.to_owned(),
            (None, Some(repository)) => repository.clone(),
            (None, None) => {
                return Err(Error::new(ErrorCode::EXT_CONFIG, "there is no bundle, and so no repository to change")
                    .suggest("write a directory of the repository as `repository` in the config"));
            }
        };
        let AuthorConfig { name, email } = &this.config.author;
        let git = Git::find(&directory, Author { name: name.clone(), email: email.clone() }).await?;
        this.bundle =
            std::fs::canonicalize(&directory)?.strip_prefix(&git.root).map(Path::to_owned).unwrap_or_default();
        let root = ctx.bundle_root().map(std::fs::canonicalize).transpose()?;
        this.is_own = root.is_some_and(|root| root.starts_with(&git.root));
        let owner = format!("{}/{}", ctx.agent(), ctx.instance());
        let changesets = Changesets::new(git, ctx.state_dir()?, owner)?;
        changesets.own()?.iter().for_each(|changeset| this.tell(changeset));
        this.changesets = Some(changesets);
        Ok(this)
    }

    /// Opens a changeset: a copy of the repository in a directory of its own, in which files can be changed freely.
    /// Nothing outside of it changes before `changesets__commit`.
    #[tool(name = "changesets__open", effect = once)]
    async fn open(&self, input: OpenInput) -> Result<Opened> {
        let (changeset, head) = self.changesets()?.open(input.reason).await?;
        self.tell(&changeset);
        let workdir = changeset.work_tree().to_owned();
        let hint = Hint {
            bundle_root_in_workdir: workdir.join(&self.bundle),
            recommended_files: self.config.recommended_files.clone(),
        };
        Ok(Opened { changeset_id: changeset.id, base_ref: reference(&head), workdir, hint })
    }

    /// Commits all changes of a changeset to the repository, and closes it. With any status but `ok` nothing is
    /// committed and the changeset stays open: correct what `error` says, and commit again. If you are made of files
    /// of the repository, `effect` says from when on their changes apply to you: `nextStep`, `nextTurn` or `none`.
    #[tool(name = "changesets__commit", effect = once, timeout = "1h")]
    async fn commit(&self, input: CommitInput) -> Result<Committed> {
        let changesets = self.changesets()?;
        let mut changeset = changesets.choose(input.changeset_id.as_deref())?;
        let message = input.message.or_else(|| changeset.description.reason.clone());
        let message = message.unwrap_or_else(|| format!("changeset {}", changeset.id));
        let lock = changesets.lock().await?;
        let (head, outcome) = match changeset.rebase(&changesets.git).await? {
            Rebased::Conflict { head, files } => (head, Err(conflict(files))),
            Rebased::Done { head, tree, changes } => {
                let outcome = self.finish(changesets, &changeset, &head, &tree, &changes, &message).await;
                (head, outcome)
            }
        };
        let mut answer = Committed {
            status: Status::Ok,
            changeset_id: changeset.id.clone(),
            base_ref: reference(&head),
            new_ref: None,
            summary: None,
            effect: None,
            error: None,
        };
        match outcome {
            Ok((commit, summary)) => {
                (answer.new_ref, answer.summary) = (Some(reference(&commit)), Some(summary));
                if let Ok(diff) = changesets.git.diff(&head, &commit).await {
                    self.api.events().emit(FilesChanged::NAME, (FilesChanged { diff },));
                }
                if let Err(error) = changesets.remove(&changeset).await {
                    self.api.logger().warn(format!("the work tree of {} stays: {}", changeset.id, error.report()));
                }
                drop(lock);
                if self.is_own {
                    answer.effect = Some(self.reloads.ask(&self.api, &changeset.id).await);
                }
                self.api.events().emit("changeset.committed", (answer.clone(),));
            }
            Err((status, problem)) => (answer.status, answer.error) = (status, Some(problem)),
        }
        Ok(answer)
    }

    #[on("agent.reloadAnswer")]
    async fn answered(&self, event: &Event) -> Result<()> {
        self.reloads.answered(event.payload()?);
        Ok(())
    }

    /// Closes a changeset and deletes all its changes.
    #[tool(name = "changesets__discard", effect = once)]
    async fn discard(&self, input: DiscardInput) -> Result<()> {
        let changesets = self.changesets()?;
        let _lock = changesets.lock().await?;
        changesets.remove(&changesets.choose(input.changeset_id.as_deref())?).await
    }

    /// Lists the open changesets.
    #[tool(name = "changesets__list", effect = read)]
    async fn list(&self) -> Result<Listed> {
        let changesets = self.changesets()?.all()?.into_iter().map(|changeset| ListedChangeset {
            workdir: changeset.work_tree().to_owned(),
            changeset_id: changeset.id,
            conversation: changeset.description.owner,
            reason: changeset.description.reason,
        });
        Ok(Listed { changesets: changesets.collect() })
    }
}

impl ChangesetsExtension {
    fn changesets(&self) -> Result<&Changesets> {
        self.changesets
            .as_ref()
            .ok_or_else(|| Error::msg("the conversation was opened to look at it, and runs no tool"))
    }

    /// Tells other extensions where a changeset can be written.
    fn tell(&self, changeset: &Changeset) {
        let (path, changeset_id) = (changeset.work_tree().to_owned(), Some(changeset.id.clone()));
        self.api.events().emit(WorktreeMounted::NAME, (WorktreeMounted { path, changeset_id },));
    }

    /// Checks the changes and commits them. Returns the commit.
    async fn finish(
        &self,
        changesets: &Changesets,
        changeset: &Changeset,
        head: &str,
        tree: &str,
        changes: &[Change],
        message: &str,
    ) -> Result<(String, Summary), (Status, Problem)> {
        if changes.is_empty() {
            return Err(rejected("E_CHANGESET_EMPTY", "the changeset changes nothing".to_owned()));
        }
        let violations: Vec<_> = changes.iter().filter(|change| !self.allows(change)).collect();
        if !violations.is_empty() {
            let links = if violations.iter().any(|change| change.is_link) { "; links are not allowed" } else { "" };
            let (status, problem) =
                rejected("E_CHANGESET_FILES", format!("these files may not be changed by a changeset{links}"));
            let violated_files = violations.into_iter().map(|change| change.path.clone()).collect();
            return Err((status, Problem { violated_files, ..problem }));
        }
        if let Some(command) = &self.config.check {
            let directory = changeset.work_tree().join(&self.bundle);
            check::run(command, &directory, self.config.check_timeout)
                .await
                .map_err(|message| rejected("E_CHANGESET_CHECK", message))?;
        }
        let commit = changeset.git.commit(tree, head, message).await.map_err(failed)?;
        if let Err(error) = changesets.git.fast_forward(&commit).await {
            return Err(self.not_moved(changesets, changes, error).await);
        }
        Ok((commit, summary(changes)))
    }

    fn allows(&self, change: &Change) -> bool {
        let is_allowed = |patterns: &Vec<WildMatch>| patterns.iter().any(|pattern| pattern.matches(&change.path));
        !change.is_link && self.allowed.as_ref().is_none_or(is_allowed)
    }

    /// Says why the repository did not take a commit: the same files have uncommitted changes in its checkout, or
    /// another commit was made meanwhile.
    async fn not_moved(&self, changesets: &Changesets, changes: &[Change], error: Error) -> (Status, Problem) {
        let mut uncommitted = changesets.git.uncommitted().await.unwrap_or_default();
        uncommitted.retain(|path| changes.iter().any(|change| change.path == *path));
        if uncommitted.is_empty() {
            return failed(error);
        }
        let message =
            "the checkout of the repository has changes in these files that are not committed; they have to be \
                       committed or taken back there first"
                .to_owned();
        let problem = Problem { code: "E_CHANGESET_UNCOMMITTED", message, ..Problem::default() };
        (Status::Conflict, Problem { conflicting_files: uncommitted, ..problem })
    }
}

fn reference(commit: &str) -> String {
    format!("git:{commit}")
}

fn rejected(code: &'static str, message: String) -> (Status, Problem) {
    (Status::Rejected, Problem { code, message, ..Problem::default() })
}

fn failed(error: Error) -> (Status, Problem) {
    (Status::Failed, Problem { code: git::GIT, message: error.to_string(), ..Problem::default() })
}

fn conflict(conflicting_files: Vec<String>) -> (Status, Problem) {
    let message = "the repository has changed in these files since the changeset was opened; the work tree has both \
                   versions now, marked where they differ: decide between them, remove the marks, and commit again"
        .to_owned();
    let problem = Problem { code: "E_CHANGESET_CONFLICT", message, ..Problem::default() };
    (Status::Conflict, Problem { conflicting_files, ..problem })
}

fn summary(changes: &[Change]) -> Summary {
    let mut summary = Summary::default();
    for Change { path, kind, .. } in changes {
        let files = match kind {
            Kind::Added => &mut summary.files_added,
            Kind::Changed => &mut summary.files_changed,
            Kind::Deleted => &mut summary.files_deleted,
        };
        files.push(path.clone());
    }
    summary
}
