//! `goondan instance repair`: finds damage in stored files, and moves it aside.

use std::fmt::Write as _;

use goondan::Result;
use goondan::store::StoredFault;

use super::find::find;
use crate::args::InstanceRepairArgs;
use crate::outcome::Outcome;
use crate::output;

pub(crate) fn repair(args: &InstanceRepairArgs) -> Result<Outcome> {
    let (store, id) = find(&args.selector)?;
    let faults = if args.yes { store.repair(&id)? } else { store.inspect(&id)? };
    if args.json {
        output::print_data(serde_json::to_string(&faults)? + "\n")?;
    } else {
        output::print(&page(&faults, args.yes))?;
    }
    Ok(if faults.is_empty() || args.yes { Outcome::Done } else { Outcome::SomeFailed })
}

fn page(faults: &[StoredFault], done: bool) -> String {
    if faults.is_empty() {
        return "Nothing is wrong.\n".to_owned();
    }
    let mut page = String::new();
    for fault in faults {
        let line = fault.line.map(|line| format!(", line {line}")).unwrap_or_default();
        // Writing to a string does not fail.
        _ = writeln!(page, "{}{line}: {}\n  {}: {}", fault.file.display(), fault.what, label(done), fault.remedy);
    }
    if !done {
        page.push_str("Nothing was changed. `--yes` carries it out; removed parts are saved as <file>.corrupt-<n>.\n");
    }
    page
}

fn label(done: bool) -> &'static str {
    if done { "done" } else { "repair" }
}
