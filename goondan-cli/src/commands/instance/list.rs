//! `goondan instance list`.

use std::fmt::Write as _;

use goondan::Result;
use goondan::decision::Wait;
use goondan::store::{InstanceStatus, StoredInstance};
use serde::Serialize;

use super::find::{store, workspaces};
use crate::args::InstanceListArgs;
use crate::output::{self, waits};

/// A stored instance and its workspace.
#[derive(Serialize)]
struct ListedInstance {
    workspace: String,
    #[serde(flatten)]
    instance: StoredInstance,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<Wait>,
}

pub(crate) fn list(args: &InstanceListArgs) -> Result<()> {
    let mut all = Vec::new();
    for workspace in workspaces(&args.store)? {
        let instances = store(&args.store, &workspace)?.instances()?;
        let of_interest = |instance: &StoredInstance| !args.suspended || instance.status == InstanceStatus::Suspended;
        for instance in instances.into_iter().filter(of_interest) {
            // One that another process opens meanwhile is listed without them.
            let waits = match args.suspended {
                true => store(&args.store, &workspace)?.read(&instance.id).map(|read| read.waits).unwrap_or_default(),
                false => Vec::new(),
            };
            let waits = waits.iter().map(Wait::masked).collect();
            all.push(ListedInstance { workspace: workspace.clone(), instance, waits });
        }
    }
    if args.json {
        return output::print_data(serde_json::to_string(&all)? + "\n");
    }
    match (all.is_empty(), args.suspended) {
        (true, false) => output::print("No conversation is stored here.\n"),
        (true, true) => output::print("No conversation waits for a decision.\n"),
        (false, _) => output::print(&table(&all)),
    }
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
        if !listed.waits.is_empty() {
            waits::page(&listed.waits).as_str().lines().for_each(|line| _ = writeln!(table, "  {line}"));
        }
    }
    table
}
