//! `goondan changeset`.

use super::StoreArgs;

/// Review the changes that agents make or propose: list, show, commit and discard changesets.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ChangesetArgs {
    #[command(subcommand)]
    pub(crate) command: ChangesetCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ChangesetCommand {
    List(ChangesetListArgs),
    Show(ChangesetShowArgs),
    Commit(ChangesetCommitArgs),
    Discard(ChangesetDiscardArgs),
}

/// List the open changesets of all conversations.
///
/// They are those of the extensions `live-config`, which wait for a person, and `changesets`, which the
/// agent commits itself.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ChangesetListArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Show what a changeset changes, as a diff.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangesetShowArgs {
    #[command(flatten)]
    pub(crate) selector: ChangesetSelector,
}

/// Commit a changeset to its repository.
///
/// The same holds as when an agent commits: `allowed` and `check` in the config of the extension, and
/// no file with uncommitted changes is overwritten. `goondan run --watch` goes on with what is
/// committed.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ChangesetCommitArgs {
    #[command(flatten)]
    pub(crate) selector: ChangesetSelector,

    /// The message of the commit [default: the reason of the changeset].
    #[arg(short, long)]
    pub(crate) message: Option<String>,
}

/// Delete a changeset with all its changes.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangesetDiscardArgs {
    #[command(flatten)]
    pub(crate) selector: ChangesetSelector,
}

/// One open changeset.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangesetSelector {
    /// The id, as `goondan changeset list` prints it.
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
