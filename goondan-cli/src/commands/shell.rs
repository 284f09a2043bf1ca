//! `goondan completions` and `goondan man`.

use std::fs;

use clap::{Command, CommandFactory};
use goondan::{Error, ErrorCode, Result};

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::output;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::whole_command(), "goondan", &mut script);
    output::print_data(script)
}

pub(crate) fn manual(args: &ManArgs) -> Result<()> {
    let directory = &args.directory;
    // `build` copies the global options to every subcommand; without it they are missing from its page.
    let mut command = without_help(Args::command());
    command.build();
    fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(command, directory)).map_err(|error| {
        Error::new(ErrorCode::IO, format!("cannot write manual pages into {}", directory.display())).caused_by(error)
    })
}

/// Removes the subcommand `help` of a command and of its subcommands: its pages would repeat the others.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}
