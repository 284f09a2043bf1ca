//! `goondan instance delete`.

use std::io::{self, BufRead, IsTerminal};

use goondan::store::InstanceId;
use goondan::{Error, ErrorCode, Result};

use super::find::find;
use crate::args::InstanceDeleteArgs;
use crate::output;

pub(crate) fn delete(args: &InstanceDeleteArgs) -> Result<()> {
    let (store, id) = find(&args.selector)?;
    if !args.yes && !confirmed(&id)? {
        return Err(Error::new(ErrorCode::USAGE, format!("`{id}` was not deleted"))
            .suggest("answer `yes`, or pass `--yes` when standard input is not a terminal"));
    }
    store.delete(&id)?;
    output::print(&format!("Deleted `{id}`.\n"))
}

/// Asks the user; without a terminal on standard input, returns `false`.
fn confirmed(id: &InstanceId) -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    output::print(&format!(
        "Delete the conversation `{id}`, the state of its extensions and its work directory? This cannot be undone. \
         [yes/no] "
    ))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}
