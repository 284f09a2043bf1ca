//! The output of `list` and `inspect`, for people and for programs: extensions, linked or in a library, and the
//! providers of models.

use std::fmt::{self, Display, Write as _};

use goondan::extension::ExtensionDescriptor;
use goondan::middleware::MiddlewareKind;
use goondan::model::ProviderDescriptor;
use goondan::plugin::ExtensionRecord;
use goondan::tool::Effect;
use serde::{Serialize, Serializer};

use crate::commands::tools::Tools;

/// A row of `list`.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Listed<'a> {
    Provider(ListedProvider),
    Extension(ListedExtension<'a>),
    Agent(ListedAgent),
}

impl Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(provider) => provider.fmt(f),
            Self::Extension(extension) => extension.fmt(f),
            Self::Agent(agent) => agent.fmt(f),
        }
    }
}

/// An agent of the bundle, with its tools. In JSON, its `kind` is `agent`.
pub(super) struct ListedAgent {
    pub(super) name: String,
    pub(super) tools: Tools,
}

impl Serialize for ListedAgent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = self.tools.object();
        object["kind"] = "agent".into();
        object["name"] = self.name.as_str().into();
        object.serialize(serializer)
    }
}

impl Display for ListedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tools of the agent {}", self.name)?;
        self.tools.page_with_digests().lines().try_for_each(|line| writeln!(f, "{}", format!("  {line}").trim_end()))
    }
}

/// A provider of models, which bundles name as `provider`. Extensions have no `kind` in JSON.
#[derive(Serialize)]
pub(super) struct ListedProvider {
    kind: &'static str,
    name: &'static str,
    version: &'static str,
    package: &'static str,
    description: &'static str,
}

impl From<&'static ProviderDescriptor> for ListedProvider {
    fn from(descriptor: &'static ProviderDescriptor) -> Self {
        Self {
            kind: "modelProvider",
            name: descriptor.name(),
            version: descriptor.version(),
            package: descriptor.package(),
            description: first_line(descriptor.description()),
        }
    }
}

impl Display for ListedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        headline(f, self.name, self.version, self.package, self.description)?;
        row(f, "provides", "models")
    }
}

/// A linked extension or one in a library. `Serialize` is the output of `--json`, `Display` the one for people.
#[derive(Serialize)]
pub(super) struct ListedExtension<'a> {
    name: &'a str,
    version: &'a str,
    package: &'a str,
    description: &'a str,
    middlewares: Vec<ListedMiddleware<'a>>,
    tools: Vec<ListedTool<'a>>,
    subscriptions: Vec<&'a str>,
    requires: Vec<&'a str>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    library: Option<LibraryOrigin<'a>>,
}

/// The library that contains an extension of a bundle.
#[derive(Serialize)]
pub(super) struct LibraryOrigin<'a> {
    /// The entry as it is written in the bundle.
    pub(super) entry: &'a str,
    /// The name of the extension in the bundle.
    pub(super) called: &'a str,
    /// The size of the file in bytes.
    pub(super) size: u64,
}

impl<'a> ListedExtension<'a> {
    /// Adds the library that contains the extension.
    pub(super) fn in_library(self, library: LibraryOrigin<'a>) -> Self {
        Self { library: Some(library), ..self }
    }
}

#[derive(Serialize)]
struct ListedMiddleware<'a> {
    kind: MiddlewareKind,
    function: &'a str,
    priority: i32,
    before: Vec<&'a str>,
    after: Vec<&'a str>,
}

#[derive(Serialize)]
struct ListedTool<'a> {
    name: &'a str,
    description: &'a str,
    effect: Effect,
    /// Whether it asks a person.
    asks: bool,
}

impl From<&'static ExtensionDescriptor> for ListedExtension<'static> {
    fn from(descriptor: &'static ExtensionDescriptor) -> Self {
        let middleware = |layer: &goondan::extension::MiddlewareDescriptor| ListedMiddleware {
            kind: layer.kind,
            function: layer.function,
            priority: layer.priority,
            before: layer.before.to_vec(),
            after: layer.after.to_vec(),
        };
        let tool = |tool: &goondan::extension::ToolDescriptor| ListedTool {
            name: tool.name,
            description: first_line(tool.description),
            effect: tool.effect,
            asks: tool.asks,
        };
        Self {
            name: descriptor.name,
            version: descriptor.version,
            package: descriptor.package,
            description: first_line(descriptor.description),
            middlewares: descriptor.middlewares.iter().map(middleware).collect(),
            tools: descriptor.tools.iter().map(tool).collect(),
            subscriptions: descriptor.subscriptions.to_vec(),
            requires: descriptor.requires.to_vec(),
            library: None,
        }
    }
}

impl<'a> From<&'a ExtensionRecord> for ListedExtension<'a> {
    fn from(record: &'a ExtensionRecord) -> Self {
        let middleware = |layer: &'a goondan::plugin::MiddlewareRecord| ListedMiddleware {
            kind: layer.kind,
            function: &layer.function,
            priority: layer.priority,
            before: texts(&layer.before),
            after: texts(&layer.after),
        };
        let tool = |tool: &'a goondan::plugin::ToolRecord| ListedTool {
            name: &tool.name,
            description: first_line(&tool.description),
            effect: tool.effect,
            asks: tool.asks,
        };
        Self {
            name: &record.name,
            version: &record.version,
            package: &record.package,
            description: first_line(&record.description),
            middlewares: record.middlewares.iter().map(middleware).collect(),
            tools: record.tools.iter().map(tool).collect(),
            subscriptions: texts(&record.subscriptions),
            requires: texts(&record.requires),
            library: None,
        }
    }
}

fn texts(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// Writes one paragraph: a first line with name, version and description, then a row for each part.
impl Display for ListedExtension<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        headline(f, self.name, self.version, self.package, self.description)?;
        for ListedMiddleware { kind, function, priority, before, after } in &self.middlewares {
            let neighbours = [("before", before), ("after", after)].into_iter().filter(|(_, names)| !names.is_empty());
            let neighbours: String = neighbours.map(|(word, names)| format!("  {word} {}", names.join(", "))).collect();
            // `toolCall` is the longest kind.
            row(f, "middleware", format_args!("{:<8}  {priority:>5}  {function}{neighbours}", kind.as_str()))?;
        }
        let longest = self.tools.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
        for ListedTool { name, description, asks, .. } in &self.tools {
            let asks = if *asks { "  (asks a person)" } else { "" };
            row(f, "tool", format_args!("{name:<longest$}  {description}{asks}"))?;
        }
        self.subscriptions.iter().try_for_each(|pattern| row(f, "listens to", pattern))?;
        self.requires.iter().try_for_each(|capability| row(f, "requires", capability))?;
        let Some(LibraryOrigin { entry, called, size }) = &self.library else { return Ok(()) };
        let called = if *called == self.name { String::new() } else { format!(", called {called}") };
        row(f, "entry", format_args!("{entry}{called}"))?;
        row(f, "size", format_args!("{size} bytes"))
    }
}

/// Writes the first line of a paragraph.
fn headline(f: &mut fmt::Formatter<'_>, name: &str, version: &str, package: &str, description: &str) -> fmt::Result {
    write!(f, "{name} {version}")?;
    // Most crates have the name of their extension, the ready-made ones with a prefix.
    if package.strip_prefix("goondan-").unwrap_or(package) != name {
        write!(f, " (crate {package})")?;
    }
    if !description.is_empty() {
        write!(f, ": {description}")?;
    }
    f.write_char('\n')
}

pub(super) fn row(f: &mut impl fmt::Write, label: &str, value: impl Display) -> fmt::Result {
    let row = format!("  {label:<12}{value}");
    writeln!(f, "{}", row.trim_end())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
