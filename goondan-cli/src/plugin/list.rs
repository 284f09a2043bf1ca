//! Owns `goondan plugin list`: the extensions that are linked into this program, for people and for programs.

use goondan::{Result, linked};

use super::listed::Listed;
use crate::args::PluginListArgs;

pub(crate) fn list(args: &PluginListArgs) -> Result<()> {
    let all: Vec<_> = linked().into_iter().map(Listed::from).collect();
    let text = if args.json {
        serde_json::to_string(&all)? + "\n"
    } else if all.is_empty() {
        "No extension is linked into this program.\n".to_owned()
    } else {
        all.iter().map(Listed::to_string).collect::<Vec<_>>().join("\n")
    };
    crate::print(&text)
}
