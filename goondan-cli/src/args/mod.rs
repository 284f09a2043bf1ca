//! The command line: options, subcommands, and their help texts.
//!
//! The doc comments of these types are the help that users read. They also become the manual pages.

mod bundle;
#[cfg(feature = "changesets")]
mod changeset;
mod deadline;
mod explain;
mod instance;
mod log;
mod new;
mod plugin;
mod run;
#[cfg(feature = "serve")]
mod serve;
mod shell;
mod trust;

use clap::{Command, CommandFactory, Parser};

pub(crate) use bundle::{BundleArgs, CheckArgs, OrderArgs, SchemaArgs};
#[cfg(feature = "changesets")]
pub(crate) use changeset::{ChangesetArgs, ChangesetCommand, ChangesetSelector};
pub(crate) use deadline::DeadlineArgs;
pub(crate) use explain::ExplainArgs;
pub(crate) use instance::{
    InstanceArgs, InstanceCommand, InstanceDecideArgs, InstanceDeleteArgs, InstanceExportArgs, InstanceImportArgs,
    InstanceListArgs, InstanceRepairArgs, InstanceRewindArgs, InstanceSelector, InstanceShowArgs, StoreArgs,
};
pub(crate) use log::{LogArgs, LogFormat};
pub(crate) use new::{NewArgs, NewCommand, NewExtensionArgs};
pub(crate) use plugin::{
    PluginArgs, PluginCommand, PluginDescribeArgs, PluginInspectArgs, PluginListArgs, PluginPackArgs,
};
pub(crate) use run::{CassettesArg, FsyncArg, RunArgs, UnansweredArg};
#[cfg(feature = "serve")]
pub(crate) use serve::ServeArgs;
pub(crate) use shell::{CompletionsArgs, ManArgs};
pub(crate) use trust::TrustArgs;

const LOG_HELP: &str = "\
Logging: answers go to standard output; the log of the runtime and of extensions goes to standard error. --log-level \
selects its lines, or else $RUST_LOG, a list of filters such as goondan::extension=debug,warn. The default is \
goondan::extension=info,warn. Colours are used on terminals only, and never if NO_COLOR is set.";

/// Runs LLM agents with native extensions.
#[derive(Debug, Parser)]
#[command(name = "goondan", version, about, max_term_width = 100, after_long_help = LOG_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(subcommand)]
    pub(crate) command: GoondanCommand,
}

impl Args {
    /// Returns the command line with the subcommands of all subcommands, which `goondan help` names.
    pub(crate) fn whole_command() -> Command {
        fn now<T: clap::Args>(deferred: Command) -> Command {
            T::augment_args(deferred.defer(std::convert::identity))
        }
        let command = Self::command()
            .mut_subcommand("instance", now::<InstanceArgs>)
            .mut_subcommand("new", now::<NewArgs>)
            .mut_subcommand("plugin", now::<PluginArgs>);
        #[cfg(feature = "changesets")]
        let command = command.mut_subcommand("changeset", now::<ChangesetArgs>);
        command
    }
}

// The arguments of a subcommand are defined when it is run. Lists of the subcommands have their first lines from here.
#[derive(Debug, clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum GoondanCommand {
    /// Hold a conversation with an agent of a bundle.
    #[command(verbatim_doc_comment)]
    Run(RunArgs),
    /// Serve the agents of a bundle over HTTP.
    #[command(verbatim_doc_comment)]
    #[cfg(feature = "serve")]
    Serve(ServeArgs),
    /// Report every mistake in a bundle without running anything.
    #[command(verbatim_doc_comment)]
    Check(CheckArgs),
    /// Agree to what the agents of a bundle can do, so that it runs without asking.
    #[command(verbatim_doc_comment)]
    Trust(TrustArgs),
    /// Show which extension wraps which, and why.
    #[command(verbatim_doc_comment)]
    Order(OrderArgs),
    /// List, show, decide, take back, delete, repair and move stored conversations.
    #[command(verbatim_doc_comment)]
    Instance(InstanceArgs),
    /// Review the changes that agents make or propose: list, show, commit and discard changesets.
    #[command(verbatim_doc_comment)]
    #[cfg(feature = "changesets")]
    Changeset(ChangesetArgs),
    /// Print the JSON Schema of bundles, for editors.
    #[command(verbatim_doc_comment)]
    Schema(SchemaArgs),
    /// Start a new project.
    #[command(verbatim_doc_comment)]
    New(NewArgs),
    /// List extensions, and inspect or pack libraries of extensions.
    #[command(verbatim_doc_comment)]
    Plugin(PluginArgs),
    /// Explain an error code: what happened, and what to do.
    #[command(verbatim_doc_comment)]
    Explain(ExplainArgs),
    /// Print the completion script for a shell.
    #[command(verbatim_doc_comment)]
    Completions(CompletionsArgs),
    /// Write the manual pages: one for the command, and one for each of its subcommands.
    #[command(verbatim_doc_comment)]
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(command: &Command) -> Vec<&str> {
        command.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect()
    }

    #[test]
    fn a_list_of_subcommands_says_the_same_as_their_own_help() {
        let (listed, mut whole) = (Args::command(), Args::whole_command());
        whole.build();
        for one in listed.get_subcommands() {
            let own = whole.find_subcommand(one.get_name()).unwrap();
            assert_eq!(one.get_about().unwrap().to_string(), own.get_about().unwrap().to_string());
        }
    }

    #[test]
    fn help_names_the_subcommands_of_all_subcommands() {
        let mut whole = Args::whole_command();
        whole.build();
        let help = whole.find_subcommand("help").unwrap();
        for own in whole.get_subcommands().filter(|own| own.get_name() != "help") {
            assert_eq!(names(help.find_subcommand(own.get_name()).unwrap()), names(own));
        }
    }
}
