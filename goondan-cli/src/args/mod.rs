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

use clap::Parser;

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

#[derive(Debug, clap::Subcommand)]
pub(crate) enum GoondanCommand {
    Run(RunArgs),
    #[cfg(feature = "serve")]
    Serve(ServeArgs),
    Check(CheckArgs),
    Trust(TrustArgs),
    Order(OrderArgs),
    Instance(InstanceArgs),
    #[cfg(feature = "changesets")]
    Changeset(ChangesetArgs),
    Schema(SchemaArgs),
    New(NewArgs),
    Plugin(PluginArgs),
    Explain(ExplainArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}
