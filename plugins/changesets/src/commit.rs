//! The conditions of a commit, the commit, and the answer.

use goondan::{Error, Result};
use serde::Serialize;

use crate::changeset::{Changeset, Changesets, Rebased};
use crate::check_tree::CheckTree;
use crate::command::GIT;
use crate::effect::Effect;
use crate::files::FILES;
use crate::filters::{Filtered, Filters};
use crate::objects::{Change, Kind};

/// The result of a commit: the answer of `changesets__commit`, and the payload of `changeset.committed`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Committed {
    /// The outcome.
    pub status: Status,
    /// The id of the changeset.
    pub changeset_id: String,
    /// The commit that was checked out.
    pub base_ref: String,
    /// The commit that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_ref: Option<String>,
    /// The files of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// None if it is not the repository of the bundle.
    #[serde(flatten)]
    pub(crate) effect: Option<Effect>,
    /// Why it is not committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
    /// The difference that the commit makes, for people who watch.
    #[serde(skip)]
    pub(crate) diff: Option<String>,
}

/// The outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Status {
    /// It is committed, and closed.
    Ok,
    /// It is not allowed, or the check failed.
    Rejected,
    /// The same files have changed meanwhile.
    Conflict,
    /// git could not do it.
    Failed,
}

/// The files of a commit.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Summary {
    /// Those that are changed.
    pub files_changed: Vec<String>,
    /// Those that are new.
    pub files_added: Vec<String>,
    /// Those that are gone.
    pub files_deleted: Vec<String>,
}

/// Why a changeset is not committed.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Problem {
    /// Stable, such as `E_CHANGESET_FILES`.
    pub code: &'static str,
    /// For people and models.
    pub message: String,
    /// The files that may not be changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violated_files: Vec<String>,
    /// The files that changed on both sides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicting_files: Vec<String>,
}

/// A problem, and the status of the commit with it.
type Refusal = (Status, Problem);

impl Changesets {
    /// Commits a changeset, and removes it; if a person has approved a tree, no other one.
    ///
    /// # Errors
    /// git cannot list the changes of the changeset.
    pub(crate) async fn commit(
        &self,
        mut changeset: Changeset,
        message: Option<String>,
        approved: Option<&str>,
    ) -> Result<Committed> {
        let message = message.or_else(|| changeset.description.reason.clone());
        let message = message.unwrap_or_else(|| format!("changeset {}", changeset.id));
        let _lock = self.lock().await?;
        let (head, outcome) = match self.done_before(&changeset).await? {
            Some((base, done)) => (base, Ok(done)),
            None => match changeset.rebase(&self.git, approved).await? {
                Rebased::Other { head } => (head, Err(other())),
                Rebased::Conflict { head, files } => (head, Err(conflict(files))),
                Rebased::Forbidden { head, files } => (head, Err(forbidden(files))),
                Rebased::Done { head, tree, changes } => {
                    let outcome = self.finish(&mut changeset, &head, &tree, &changes, &message).await;
                    (head, outcome)
                }
            },
        };
        let mut answer = Committed {
            status: Status::Ok,
            changeset_id: changeset.id.clone(),
            base_ref: reference(&head),
            new_ref: None,
            summary: None,
            effect: None,
            error: None,
            diff: None,
        };
        match outcome {
            Ok((commit, summary)) => {
                (answer.new_ref, answer.summary) = (Some(reference(&commit)), Some(summary));
                answer.diff = changeset.objects.difference(&head, &commit).await.ok();
                // A changeset that stays is listed, and can be discarded.
                _ = self.remove(&changeset).await;
            }
            Err((status, problem)) => (answer.status, answer.error) = (status, Some(problem)),
        }
        Ok(answer)
    }

    /// Returns the commit with its parent, if the repository has it already: the process was killed before it could
    /// close the changeset.
    async fn done_before(&self, changeset: &Changeset) -> Result<Option<(String, (String, Summary))>> {
        if let Some(commit) = &changeset.description.commit
            && self.git.contains(commit).await?
        {
            let base = changeset.objects.parent(commit).await?;
            let changes = changeset.objects.changes(&base, commit).await?;
            return Ok(Some((base, (commit.clone(), summary(&changes)))));
        }
        if changeset.work_tree().is_dir() {
            return Ok(None);
        }
        let message = format!("the work tree of the changeset `{}` is gone", changeset.id);
        Err(Error::new(GIT, message).suggest("discard the changeset"))
    }

    /// Checks the changes and commits them. Returns the commit.
    async fn finish(
        &self,
        changeset: &mut Changeset,
        head: &str,
        tree: &str,
        changes: &[Change],
        message: &str,
    ) -> Result<(String, Summary), Refusal> {
        self.check(changeset, tree, changes).await?;
        let filters = Filters::of(&self.git).await.map_err(failed)?;
        let filtered = filters.refuse(&self.git, &changeset.objects, changes).await.map_err(failed)?;
        let commit = changeset.objects.commit(tree, head, message).await.map_err(failed)?;
        if let Some(filtered) = filtered {
            self.git.keep(&changeset.reference(), Some(&commit)).await.map_err(failed)?;
            return Err(refused(filtered, &changeset.reference()));
        }
        changeset.will_be(&commit).map_err(failed)?;
        if let Err(error) = self.git.fast_forward(&commit, filters.settings()).await {
            return Err(self.not_moved(changes, &filters, error).await);
        }
        Ok((commit, summary(changes)))
    }

    /// Checks the changes of a changeset, which make `tree`.
    pub(crate) async fn check(&self, changeset: &Changeset, tree: &str, changes: &[Change]) -> Result<(), Refusal> {
        let config = &self.config;
        if changes.is_empty() {
            let message = "the changeset changes nothing that the repository does not have already".to_owned();
            return Err(rejected("E_CHANGESET_EMPTY", message));
        }
        let violations: Vec<_> = changes.iter().filter(|change| !config.allows(change)).collect();
        if !violations.is_empty() {
            let links = if violations.iter().any(|change| change.is_link()) { "; links are not allowed" } else { "" };
            let (status, problem) = rejected(FILES, format!("these files may not be changed by a changeset{links}"));
            let violated_files = violations.into_iter().map(|change| change.path.clone()).collect();
            return Err((status, Problem { violated_files, ..problem }));
        }
        let Some(command) = &config.check else { return Ok(()) };
        let (objects, environment) = (&changeset.objects, self.environment.clone());
        let tree_of_checks = CheckTree::of(&self.git, objects, environment, &self.directory).await.map_err(failed)?;
        let checked = tree_of_checks.check(tree, command, config, &self.bundle).await.map_err(failed)?;
        checked.map_err(|message| rejected("E_CHANGESET_CHECK", message))
    }

    /// Says why the repository did not take a commit: the same files have uncommitted changes in its checkout, or
    /// another commit was made meanwhile.
    async fn not_moved(&self, changes: &[Change], filters: &Filters, error: Error) -> Refusal {
        let mut uncommitted = self.git.uncommitted(filters.settings()).await.unwrap_or_default();
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

/// The prefix of the names of commits.
const GIT_REF: &str = "git:";

pub(crate) fn reference(commit: &str) -> String {
    format!("{GIT_REF}{commit}")
}

pub(crate) fn rejected(code: &'static str, message: String) -> Refusal {
    (Status::Rejected, Problem { code, message, ..Problem::default() })
}

fn failed(error: Error) -> Refusal {
    (Status::Failed, Problem { code: GIT, message: error.to_string(), ..Problem::default() })
}

fn conflict(conflicting_files: Vec<String>) -> Refusal {
    let message = "the repository has changed in these files since the changeset was opened; the work tree has both \
                   versions now, marked where they differ: decide between them, remove the marks, and commit again"
        .to_owned();
    let problem = Problem { code: "E_CHANGESET_CONFLICT", message, ..Problem::default() };
    (Status::Conflict, Problem { conflicting_files, ..problem })
}

fn other() -> Refusal {
    let message =
        "the files were changed after the person had approved them; commit again to ask about these".to_owned();
    rejected("E_CHANGESET_CHANGED", message)
}

fn forbidden(violated_files: Vec<String>) -> Refusal {
    let message = "no changeset may have these files, which git keeps for itself; delete them, or let `.gitignore` \
                   name the directory above them";
    let (status, problem) = rejected(FILES, message.to_owned());
    (status, Problem { violated_files, ..problem })
}

fn refused(Filtered { files, message }: Filtered, reference: &str) -> Refusal {
    let remedy = format!("a person can look at it, and merge it with `git merge {reference}`");
    let (status, problem) = rejected("E_CHANGESET_FILTER", format!("{message}; {remedy}"));
    (status, Problem { violated_files: files, ..problem })
}

pub(crate) fn summary(changes: &[Change]) -> Summary {
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
