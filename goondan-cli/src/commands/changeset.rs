//! `goondan changeset`: a person looks at the changes of agents, and commits or discards them.
// LEGACY-LIVECONFIG-01

use std::fmt::Write as _;
use std::fs;
use std::io;

use changesets::{Review, Status};
use goondan::{Error, ErrorCode, Result};

use super::instance::find::{root, workspaces};
use crate::args::{ChangesetArgs, ChangesetCommand, ChangesetSelector, StoreArgs};
use crate::outcome::Outcome;
use crate::output;

pub(crate) fn changeset(args: ChangesetArgs) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match args.command {
        ChangesetCommand::List(args) => output::print(&table(&all(&args.store)?))?,
        ChangesetCommand::Show(args) => {
            let review = find(&args.selector)?;
            let diff = runtime.block_on(review.diff())?;
            output::print(&format!("{}\n{diff}", heading(&review)))?;
        }
        ChangesetCommand::Commit(args) => {
            let committed = runtime.block_on(find(&args.selector)?.commit(args.message))?;
            if committed.status != Status::Ok {
                return Err(refused(&committed.error.unwrap_or_default()));
            }
            output::print(&format!("Committed as {}.\n", committed.new_ref.unwrap_or_default()))?;
        }
        ChangesetCommand::Discard(args) => {
            runtime.block_on(find(&args.selector)?.discard())?;
            output::print(&format!("Discarded `{}`.\n", args.selector.id))?;
        }
    }
    Ok(Outcome::Done)
}

/// Returns the open changesets of all extensions.
fn all(args: &StoreArgs) -> Result<Vec<Review>> {
    let mut all = Vec::new();
    for workspace in workspaces(args)? {
        let extensions = root(args)?.join(workspace).join("extensions");
        let entries = match fs::read_dir(extensions) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        for entry in entries {
            let entry = entry?;
            // No link: only directories that extensions have made themselves.
            if entry.file_type()?.is_dir() {
                all.extend(Review::all(&entry.path())?);
            }
        }
    }
    Ok(all)
}

fn find(selector: &ChangesetSelector) -> Result<Review> {
    let found = all(&selector.store)?.into_iter().find(|review| review.id() == selector.id);
    found.ok_or_else(|| {
        Error::new(ErrorCode::USAGE, format!("there is no open changeset `{}`", selector.id))
            .suggest("`goondan changeset list` lists the open ones")
    })
}

fn table(all: &[Review]) -> String {
    if all.is_empty() {
        return "No changeset is open.\n".to_owned();
    }
    let mut table = String::new();
    for review in all {
        // Writing to a string does not fail.
        _ = writeln!(table, "{}", heading(review));
    }
    table
}

/// Returns the conversation, its reason, and the place of the files.
fn heading(review: &Review) -> String {
    let (id, conversation, files) = (review.id(), review.conversation(), review.work_tree());
    let reason = review.reason().unwrap_or("no reason is given");
    format!("{id}  {conversation}: {reason}\n  {}", files.display())
}

fn refused(problem: &changesets::Problem) -> Error {
    let files = [&problem.violated_files[..], &problem.conflicting_files[..]].concat();
    let files = if files.is_empty() { String::new() } else { format!(": {}", files.join(", ")) };
    Error::new(problem.code, format!("{}{files}", problem.message))
        .suggest("change the files of the work tree, and commit again; or discard the changeset")
}
