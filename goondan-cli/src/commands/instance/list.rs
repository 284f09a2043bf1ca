//! `goondan instance list`.

use std::fmt::Write as _;

use goondan::Result;
use goondan::store::StoredInstance;
use serde::Serialize;

use super::find::{store, workspaces};
use crate::args::InstanceListArgs;
use crate::output;

/// A stored instance and its workspace.
#[derive(Serialize)]
struct ListedInstance {
    workspace: String,
    #[serde(flatten)]
    instance: StoredInstance,
}

pub(crate) fn list(args: &InstanceListArgs) -> Result<()> {
    let mut all = Vec::new();
    for workspace in workspaces(&args.store)? {
        let instances = store(&args.store, &workspace)?.instances()?;
        all.extend(instances.into_iter().map(|instance| ListedInstance { workspace: workspace.clone(), instance }));
    }
    if args.json {
        return output::print_data(serde_json::to_string(&all)? + "\n");
    }
    output::print(&if all.is_empty() { "No conversation is stored here.\n".to_owned() } else { table(&all) })
}

fn table(all: &[ListedInstance]) -> String {
    let width =
        |text: fn(&ListedInstance) -> usize, title: &str| all.iter().map(text).max().unwrap_or(0).max(title.len());
    let workspace = width(|listed| listed.workspace.chars().count(), "WORKSPACE");
    let instance = width(|listed| listed.instance.id.to_string().chars().count(), "INSTANCE");
    let status = width(|listed| listed.instance.status.as_str().len(), "STATUS");
    let mut table =
        format!("{:<workspace$}  {:<instance$}  {:<status$}  LAST TURN\n", "WORKSPACE", "INSTANCE", "STATUS");
    for listed in all {
        let StoredInstance { id, status: doing, updated_at, .. } = &listed.instance;
        let (id, doing) = (id.to_string(), doing.as_str());
        // Writing to a string does not fail.
        _ = writeln!(table, "{:<workspace$}  {id:<instance$}  {doing:<status$}  {updated_at}", listed.workspace);
    }
    table
}
