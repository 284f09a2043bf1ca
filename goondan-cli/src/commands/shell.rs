//! `goondan completions` and `goondan man`.

use std::fs;

use clap::CommandFactory;
use goondan::{Error, ErrorCode, Result};

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::output;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "goondan", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

pub(crate) fn manual(args: &ManArgs) -> Result<()> {
    let directory = &args.directory;
    // `build` copies the global options to every subcommand; without it they are missing from its page.
    let mut command = Args::command();
    command.build();
    fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(command, directory)).map_err(|error| {
        Error::new(ErrorCode::IO, format!("cannot write manual pages into {}", directory.display())).caused_by(error)
    })
}
