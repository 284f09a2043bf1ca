//! The commands: one module for each subcommand of `goondan`.

mod bundle;
mod capabilities;
#[cfg(feature = "changesets")]
mod changeset;
mod check;
mod explain;
mod instance;
mod new;
mod order;
mod plugin;
mod run;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod shell;
mod tools;
mod trust;
mod typed_answer;

use goondan::Result;

use crate::args::{GoondanCommand, InstanceCommand, NewCommand, PluginCommand};
use crate::outcome::Outcome;

/// Executes `command`.
pub(crate) fn execute(command: GoondanCommand) -> Result<Outcome> {
    match command {
        GoondanCommand::Run(args) => return run::run(&args),
        #[cfg(feature = "serve")]
        GoondanCommand::Serve(args) => return serve::serve(&args),
        GoondanCommand::Check(args) => return check::check(&args),
        GoondanCommand::Trust(args) => return trust::trust(&args),
        GoondanCommand::Order(args) => return order::order(&args),
        GoondanCommand::Schema(args) => schema::schema(&args)?,
        GoondanCommand::Instance(args) => match args.command {
            InstanceCommand::List(args) => instance::list(&args)?,
            InstanceCommand::Show(args) => instance::show(&args)?,
            InstanceCommand::Decide(args) => return instance::decide(&args),
            InstanceCommand::Rewind(args) => instance::rewind(&args)?,
            InstanceCommand::Delete(args) => instance::delete(&args)?,
            InstanceCommand::Repair(args) => return instance::repair(&args),
            InstanceCommand::Export(args) => instance::export(&args)?,
            InstanceCommand::Import(args) => instance::import(&args)?,
        },
        #[cfg(feature = "changesets")]
        GoondanCommand::Changeset(args) => return changeset::changeset(args),
        GoondanCommand::New(args) => match args.command {
            NewCommand::Extension(args) => new::extension(&args)?,
        },
        GoondanCommand::Plugin(args) => match args.command {
            PluginCommand::List(args) => return plugin::list(&args),
            PluginCommand::Inspect(args) => plugin::inspect(&args)?,
            PluginCommand::Pack(args) => plugin::pack(&args)?,
            PluginCommand::Describe(args) => plugin::describe(&args)?,
        },
        GoondanCommand::Explain(args) => explain::explain(&args)?,
        GoondanCommand::Completions(args) => shell::completions(&args)?,
        GoondanCommand::Man(args) => shell::manual(&args)?,
    }
    Ok(Outcome::Done)
}
