//! The list of abilities of a bundle's agents, for `check --capabilities` and for the question before the first run.
// TRUST-01

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::sync::Arc;

use goondan::bundle::{
    Capabilities, CapabilityKind, CapabilityOwner, Entry, Libraries, Plugins, SourcedValue, ValueSource,
};
use goondan::extension::linked;
use goondan::tool::Effect;
use goondan::{Bundle, Result};
use process::Environment;
use serde::Serialize;

/// The abilities of a bundle's agents, as far as the bundle names them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    capabilities: Vec<Capability>,
    /// The variables of the environment that the bundle reads.
    variables: Vec<Variable>,
    /// The tools that ask a person, or are not known to only read. Those of servers are not known before they are
    /// asked.
    tools: Vec<Tool>,
    /// The variables that child processes do not get.
    withheld: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Capability {
    kind: String,
    value: String,
    owner: String,
    /// The digest that a library must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// Whether it is the host of a model, to which conversations are sent.
    #[serde(skip)]
    is_of_model: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Variable {
    name: String,
    /// Empty for one that a model reads by itself.
    setting: String,
    owner: String,
    secret: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Tool {
    name: String,
    effect: &'static str,
    /// Whether it asks a person.
    asks: bool,
    owner: String,
}

impl Listed {
    /// Lists the abilities of the agents of `bundle`. No code of a library is run: of those without schemas, nothing is
    /// known but their paths.
    ///
    /// # Errors
    /// As [`Capabilities::of`], and those of libraries that cannot be loaded.
    pub(crate) fn of(bundle: &Bundle, libraries: &dyn Libraries) -> Result<Self> {
        let secrets: Arc<[String]> = bundle.secret_variables().into_iter().map(str::to_owned).collect();
        let withheld = Environment::without_secrets(move || Some(Arc::clone(&secrets))).withheld();
        let mut capabilities = capabilities(bundle, libraries)?;
        capabilities.retain(|known| known.kind != READS);
        Ok(Self { capabilities, variables: variables(bundle), tools: tools(bundle)?, withheld })
    }
}

/// The kind of what is listed beside, as a variable with what becomes of its value.
const READS: &str = "reads";

fn capabilities(bundle: &Bundle, libraries: &dyn Libraries) -> Result<Vec<Capability>> {
    let schema = |entry: &Entry| match entry {
        Entry::Library(library) => Ok(libraries.declared(library)?.config_schema),
        entry => entry.config_schema(None),
    };
    let digests = bundle.extensions().filter_map(|extension| match &extension.entry {
        Entry::Library(library) => Some((extension.name.as_str(), library.sha256.clone()?)),
        _ => None,
    });
    let digests: BTreeMap<_, _> = digests.collect();
    let all = Capabilities::of(bundle, schema)?;
    let all = all.iter().map(|capability| {
        let (owner, extension) = owner(&capability.owner);
        let of_library = extension.filter(|_| capability.kind == CapabilityKind::Library);
        Capability {
            kind: capability.kind.to_string(),
            value: capability.value.clone(),
            owner,
            sha256: of_library.and_then(|name| digests.get(name).cloned()),
            is_of_model: extension.is_none(),
        }
    });
    Ok(all.collect())
}

/// The text that a person agrees to before a bundle runs.
pub(crate) struct Lines {
    pub(crate) all: BTreeSet<String>,
    /// Whether a run does nothing outside but ask models.
    pub(crate) are_harmless: bool,
}

impl Lines {
    /// As [`Listed::of`].
    pub(crate) fn of(bundle: &Bundle, libraries: &dyn Libraries) -> Result<Self> {
        let capabilities = capabilities(bundle, libraries)?;
        // An extension could send the model the values that it reads from the environment.
        let is_harmless = |kind: &str| kind == "host" || kind == READS;
        let are_harmless = capabilities.iter().all(|known| known.is_of_model && is_harmless(&known.kind));
        if are_harmless {
            return Ok(Self { all: BTreeSet::new(), are_harmless });
        }
        let all = capabilities.iter().filter(|known| known.kind != READS).map(ToString::to_string);
        let all = all.chain(variables(bundle).iter().map(ToString::to_string)).collect();
        Ok(Self { all, are_harmless })
    }
}

/// Returns the line of a library in the bundle, as it is agreed to.
pub(crate) fn library(file: &str, extension: &str, agent: &str) -> String {
    let owner = format!("extension {extension} of the agent {agent}");
    Capability { kind: "library".to_owned(), value: file.to_owned(), owner, sha256: None, is_of_model: false }
        .to_string()
}

/// Returns an owner in words, and the name of the extension if it is one.
fn owner(owner: &CapabilityOwner) -> (String, Option<&str>) {
    match owner {
        CapabilityOwner::Model(model) => (format!("model {model}"), None),
        CapabilityOwner::Extension(agent, extension) => {
            (format!("extension {extension} of the agent {agent}"), Some(extension.as_str()))
        }
        // One of a newer version.
        _ => ("another part".to_owned(), Some("")),
    }
}

/// Returns where each variable of the environment goes that the agents of the bundle read.
fn variables(bundle: &Bundle) -> Vec<Variable> {
    let (mut variables, mut unnamed) = (BTreeSet::new(), BTreeSet::new());
    let mut add = |value: &SourcedValue, owner: String| {
        if let ValueSource::Env(name) = &value.source {
            let (name, setting) = (name.clone(), value.keys.join("."));
            variables.insert(Variable { name, setting, owner, secret: value.secret });
        }
    };
    for agent in bundle.agents() {
        for model in bundle.models_of(agent) {
            model.sources.iter().for_each(|value| add(value, format!("model {}", model.name)));
            unnamed.extend(model.variables.iter().map(|name| Variable {
                name: name.clone(),
                setting: String::new(),
                owner: format!("model {}", model.name),
                secret: true,
            }));
        }
        for used in &agent.extensions {
            let owner = format!("extension {} of the agent {}", used.target.name, agent.name);
            used.merged_sources().for_each(|value| add(value, owner.clone()));
        }
    }
    variables.append(&mut unnamed);
    variables.into_iter().collect()
}

/// Returns the tools that are not known to only read.
fn tools(bundle: &Bundle) -> Result<Vec<Tool>> {
    let (linked, plugins, mut tools) = (linked(), Plugins::new(), BTreeSet::new());
    for agent in bundle.agents() {
        for used in &agent.extensions {
            let owner = format!("extension {} of the agent {}", used.target.name, agent.name);
            let mut add = |name: &str, effect: Effect, asks: bool| {
                if effect != Effect::Read || asks {
                    let (name, owner) = (name.to_owned(), owner.clone());
                    tools.insert(Tool { name, effect: effect_text(effect), asks, owner });
                }
            };
            match &used.target.entry {
                Entry::Linked(name) => {
                    let found = linked.iter().filter(|descriptor| descriptor.name == name.as_str());
                    found
                        .flat_map(|descriptor| descriptor.tools)
                        .for_each(|tool| add(tool.name, tool.effect, tool.asks));
                }
                Entry::Library(library) => {
                    let inspected = plugins.inspect(library)?;
                    library.record(&inspected)?.tools.iter().for_each(|tool| add(&tool.name, tool.effect, tool.asks));
                }
                // One of a newer version.
                _ => {}
            }
        }
    }
    Ok(tools.into_iter().collect())
}

fn effect_text(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Idempotent => "idempotent",
        _ => "once",
    }
}

impl Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, value, owner, sha256, .. } = self;
        write!(f, "{kind:<8}  {value}  ({owner})")?;
        sha256.as_ref().map_or(Ok(()), |digest| write!(f, ", sha256 {digest}"))
    }
}

impl Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setting = if self.setting.is_empty() { String::new() } else { format!("{} of ", self.setting) };
        write!(f, "reads     {}  ({setting}the {})", self.name, self.owner)
    }
}

/// The page for people.
impl Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.capabilities.is_empty() && self.variables.is_empty() {
            writeln!(f, "the agents do nothing outside of their conversations, as far as the bundle says it")?;
        } else {
            writeln!(f, "the agents can do this outside of their conversations:")?;
        }
        self.capabilities.iter().try_for_each(|capability| writeln!(f, "  {capability}"))?;
        self.variables.iter().try_for_each(|variable| writeln!(f, "  {variable}"))?;
        let acting: fn(&&Tool) -> bool = |tool| tool.effect != effect_text(Effect::Read);
        let asking: fn(&&Tool) -> bool = |tool| tool.asks;
        for (heading, is_listed) in [("tools that act:", acting), ("tools that ask a person:", asking)] {
            let mut listed = self.tools.iter().filter(is_listed).peekable();
            if listed.peek().is_some() {
                writeln!(f, "{heading}")?;
            }
            listed.try_for_each(|tool| writeln!(f, "  {}  ({})", tool.name, tool.owner))?;
        }
        if !self.withheld.is_empty() {
            writeln!(f, "commands do not get these variables: {}", self.withheld.join(", "))?;
        }
        Ok(())
    }
}
