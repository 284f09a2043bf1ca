//! The abilities of a bundle's agents outside of their conversations: to run commands, load libraries, reach hosts and
//! change files.
//!
//! The abilities of an extension are known from its config. The schema of a config marks the settings that decide it
//! by the keyword `x-goondan`, so that a bundle can be judged before any code of the extension runs.
// TREE-01

mod marks;
mod texts;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use goondan_core::{AgentName, ExtensionName, Result};
use goondan_runtime::find_provider;
use serde_json::Value;

use crate::bundle::Bundle;
use crate::coverage::AgentCoverage;
use crate::read::{SourcedValue, ValueSource};
use crate::resource::Entry;
use marks::{Marked, marked};
use texts::{texts, word};

/// The abilities of a bundle's agents outside of their conversations, as far as the bundle names them.
///
/// ```no_run
/// use goondan::Bundle;
/// use goondan::bundle::{Capabilities, Entry};
///
/// let bundle = Bundle::load("examples/coder")?;
/// let capabilities = Capabilities::of(&bundle, |entry: &Entry| Ok(entry.linked_schema()))?;
/// println!("the agents can do this: {capabilities}");
/// # Ok::<(), goondan::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    all: BTreeSet<Capability>,
    /// The guards of the agents, as far as they are known.
    guards: BTreeSet<(AgentName, ExtensionName)>,
    agents: BTreeSet<AgentName>,
}

/// One thing that an agent can do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Capability {
    /// Its kind.
    pub kind: CapabilityKind,
    /// Its text, such as `npx foo` for a command.
    pub value: String,
    /// Its owner.
    pub owner: CapabilityOwner,
}

/// The kind of a [`Capability`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CapabilityKind {
    /// Runs a command.
    Command,
    /// Runs any command.
    Shell,
    /// Loads a library.
    Library,
    /// Connects to a host.
    Host,
    /// Works below a directory.
    Root,
    /// Sets a variable in the environment of a command.
    Variable,
    /// Reads a variable of the environment of the program.
    Reads,
    /// Is not limited by a setting that limits others.
    Setting,
    /// Acts without a guard that it had.
    // GUARD-01
    Unguarded,
}

/// The owner of a [`Capability`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CapabilityOwner {
    /// A model.
    Model(String),
    /// An extension of an agent.
    Extension(AgentName, ExtensionName),
}

impl Capabilities {
    /// Returns those of a bundle. `schema` returns the schema of the config of an extension, or `None` if it is not
    /// known; then its abilities by config are unknown.
    ///
    /// # Errors
    /// Those of `schema`, and `E_MODEL_PROVIDER` for a provider that does not work.
    pub fn of(bundle: &Bundle, mut schema: impl FnMut(&Entry) -> Result<Option<Value>>) -> Result<Self> {
        let mut all = Self::default();
        let guards = |agent: &AgentCoverage| {
            let guards = agent.guards.iter().map(|guard| (agent.agent.clone(), guard.extension.clone()));
            guards.collect::<Vec<_>>()
        };
        all.agents.extend(bundle.agents().map(|agent| agent.name.clone()));
        all.guards.extend(bundle.coverage().agents.iter().flat_map(guards));
        for agent in bundle.agents() {
            for model in bundle.models_of(agent) {
                let owner = CapabilityOwner::Model(model.name.clone());
                if let Some(provider) = find_provider(&model.provider)? {
                    all.add_marked(&marked(&provider.config_schema()?, &model.shown_config()), &owner);
                }
                all.add_reads(model.sources.iter(), &owner);
                model.variables.iter().for_each(|name| all.add(CapabilityKind::Reads, word(name), &owner));
                model.hosts.iter().for_each(|host| all.add(CapabilityKind::Host, texts::host(host), &owner));
            }
            for used in &agent.extensions {
                let owner = CapabilityOwner::Extension(agent.name.clone(), used.target.name.clone());
                if let Entry::Library(library) = &used.target.entry {
                    let file = library.file.strip_prefix(bundle.root()).unwrap_or(&library.file);
                    all.add(CapabilityKind::Library, word(&file.to_string_lossy()), &owner);
                }
                all.add_reads(used.merged_sources(), &owner);
                if let Some(schema) = schema(&used.target.entry)? {
                    all.add_marked(&marked(&schema, &used.shown_config()), &owner);
                }
            }
        }
        Ok(all)
    }

    fn add(&mut self, kind: CapabilityKind, value: String, owner: &CapabilityOwner) {
        self.all.insert(Capability { kind, value, owner: owner.clone() });
    }

    fn add_reads<'a>(&mut self, values: impl Iterator<Item = &'a SourcedValue>, owner: &CapabilityOwner) {
        for value in values {
            let ValueSource::Env(name) = &value.source;
            let text = format!("{} for {}", word(name), word(&value.keys.join(".")));
            self.add(CapabilityKind::Reads, text, owner);
        }
    }

    fn add_marked(&mut self, marked: &[Marked<'_>], owner: &CapabilityOwner) {
        for marked in marked {
            let kind = CapabilityKind::of(marked.kind);
            texts(kind, marked).into_iter().for_each(|text| self.add(kind, text, owner));
        }
    }

    /// Iterates over them, sorted by kind and text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Capability> {
        self.all.iter()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds all of `others`, which is empty then.
    pub fn append(&mut self, others: &mut Self) {
        self.all.append(&mut others.all);
        self.guards.append(&mut others.guards);
        self.agents.append(&mut others.agents);
    }

    /// Returns those that are not in `known`. Hosts and libraries are known whatever their owner is. An agent that has
    /// lost a guard can do more, too.
    #[must_use]
    pub fn beyond(&self, known: &Self) -> Self {
        let is_known = |new: &&Capability| {
            let by_all = matches!(new.kind, CapabilityKind::Host | CapabilityKind::Library);
            let same = |old: &Capability| old.kind == new.kind && old.value == new.value;
            known.all.iter().any(|old| same(old) && (by_all || old.owner == new.owner))
        };
        let mut beyond =
            Self { all: self.all.iter().filter(|new| !is_known(new)).cloned().collect(), ..Self::default() };
        for (agent, guard) in known.guards.difference(&self.guards).filter(|(agent, _)| self.agents.contains(agent)) {
            let owner = CapabilityOwner::Extension(agent.clone(), guard.clone());
            beyond.add(CapabilityKind::Unguarded, format!("{agent} by {guard}"), &owner);
        }
        beyond
    }
}

impl CapabilityKind {
    fn of(mark: &str) -> Self {
        match mark {
            "command" => Self::Command,
            "shell" => Self::Shell,
            "host" => Self::Host,
            "root" => Self::Root,
            "variable" => Self::Variable,
            // One of a newer version too.
            _ => Self::Setting,
        }
    }
}

/// Returns the files that the commands of a config name, of an extension with this schema and a bundle in the
/// directory `root`.
pub(crate) fn files_of_commands(schema: &Value, config: &Value, root: &Path) -> Vec<PathBuf> {
    let marked = marked(schema, config);
    let named = |kind| {
        let marked = marked.iter().filter(|marked| marked.text.is_none());
        let marked = marked.filter(move |marked| CapabilityKind::of(marked.kind) == kind);
        marked.flat_map(|marked| texts::leaves(marked.value))
    };
    let bases: Vec<_> = named(CapabilityKind::Root).map(|directory| root.join(directory)).collect();
    let bases = || bases.iter().map(PathBuf::as_path).chain([root]);
    let files = named(CapabilityKind::Command).flat_map(|word| bases().map(move |base| base.join(word)));
    files.filter(|file| file.is_file()).collect()
}

/// The kind and the text, such as `command npx foo`.
impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.value)
    }
}

/// All of them in one line, each text once.
impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts: Vec<_> = self.all.iter().map(ToString::to_string).collect();
        texts.dedup();
        f.write_str(&texts.join(", "))
    }
}

impl fmt::Display for CapabilityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command => "command",
            Self::Shell => "shell",
            Self::Library => "library",
            Self::Host => "host",
            Self::Root => "root",
            Self::Variable => "variable",
            Self::Reads => "reads",
            Self::Setting => "setting",
            Self::Unguarded => "unguarded",
        })
    }
}
