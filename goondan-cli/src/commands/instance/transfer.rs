//! `goondan instance export` and `import`: one file for one conversation.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use goondan::store::FileStore;
use goondan::store::{state_root, workspace_id};
use goondan::{Error, ErrorCode, Result};

use super::find::{find, parse};
use crate::args::{InstanceExportArgs, InstanceImportArgs};
use crate::output;

pub(crate) fn export(args: &InstanceExportArgs) -> Result<()> {
    let (store, id) = find(&args.selector)?;
    if is_stream(&args.file) {
        let mut lines = Vec::new();
        store.export(&id, &mut lines)?;
        return output::print_data(lines);
    }
    let mut options = OpenOptions::new();
    // For its owner alone, like the conversation itself.
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&args.file)
        .map_err(|error| io_error("create", &args.file, error))?;
    let written = store.export(&id, &file).and_then(|()| Ok(file.sync_all()?));
    if written.is_err() {
        // An incomplete file is of no use. The first error is the one to report.
        _ = std::fs::remove_file(&args.file);
    }
    written
}

pub(crate) fn import(args: &InstanceImportArgs) -> Result<()> {
    let name = args.name.as_deref().map(parse).transpose()?;
    let root = state_root(args.state_root.as_deref())?.join("workspaces");
    let store = FileStore::open(root.join(workspace_id(&args.workspace)))?;
    let id = if is_stream(&args.file) {
        store.import(io::stdin().lock(), name)?
    } else {
        let mut file = BufReader::new(File::open(&args.file).map_err(|error| io_error("open", &args.file, error))?);
        // Here, because the store does not know the name of the file. A directory can be opened, but not read.
        file.fill_buf().map_err(|error| io_error("read", &args.file, error))?;
        store.import(file, name)?
    };
    output::print(&format!("Imported `{id}`.\n"))
}

fn is_stream(file: &Path) -> bool {
    file == Path::new("-")
}

fn io_error(verb: &str, file: &Path, error: io::Error) -> Error {
    Error::new(ErrorCode::IO, format!("cannot {verb} {}", file.display())).caused_by(error)
}
