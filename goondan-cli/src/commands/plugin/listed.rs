//! Owns an extension as it is listed: for people and for programs, whether it is linked or in a library.

use std::fmt::{self, Display, Write as _};

use goondan::{Effect, ExtensionDescriptor, ExtensionRecord, MiddlewareKind};
use serde::Serialize;

/// An extension as `--json` shows it.
#[derive(Serialize)]
pub(super) struct Listed<'a> {
    name: &'a str,
    version: &'a str,
    package: &'a str,
    description: &'a str,
    middlewares: Vec<Middleware<'a>>,
    tools: Vec<Tool<'a>>,
    subscriptions: Vec<&'a str>,
    requires: Vec<&'a str>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    library: Option<InLibrary<'a>>,
}

/// Where a bundle has an extension from.
#[derive(Serialize)]
pub(super) struct InLibrary<'a> {
    /// The entry, as it is written.
    pub(super) entry: &'a str,
    /// What the bundle calls the extension.
    pub(super) called: &'a str,
    /// The bytes of the file.
    pub(super) size: u64,
}

impl<'a> Listed<'a> {
    /// The same, out of a library of a bundle.
    pub(super) fn of(self, library: InLibrary<'a>) -> Self {
        Self { library: Some(library), ..self }
    }
}

#[derive(Serialize)]
struct Middleware<'a> {
    kind: MiddlewareKind,
    function: &'a str,
    priority: i32,
    before: Vec<&'a str>,
    after: Vec<&'a str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    effect: Effect,
}

impl From<&'static ExtensionDescriptor> for Listed<'static> {
    fn from(descriptor: &'static ExtensionDescriptor) -> Self {
        let middleware = |layer: &goondan::MiddlewareDescriptor| Middleware {
            kind: layer.kind,
            function: layer.function,
            priority: layer.priority,
            before: layer.before.to_vec(),
            after: layer.after.to_vec(),
        };
        let tool = |tool: &goondan::ToolDescriptor| Tool {
            name: tool.name,
            description: first_line(tool.description),
            effect: tool.effect,
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

impl<'a> From<&'a ExtensionRecord> for Listed<'a> {
    fn from(record: &'a ExtensionRecord) -> Self {
        let middleware = |layer: &'a goondan::MiddlewareRecord| Middleware {
            kind: layer.kind,
            function: &layer.function,
            priority: layer.priority,
            before: texts(&layer.before),
            after: texts(&layer.after),
        };
        let tool = |tool: &'a goondan::ToolRecord| Tool {
            name: &tool.name,
            description: first_line(&tool.description),
            effect: tool.effect,
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

/// One paragraph for each extension: its first line, and below it what it has, in columns.
impl Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)?;
        // Most crates are called like their extension.
        if self.package != self.name {
            write!(f, " (crate {})", self.package)?;
        }
        if !self.description.is_empty() {
            write!(f, ": {}", self.description)?;
        }
        f.write_char('\n')?;
        for Middleware { kind, function, priority, before, after } in &self.middlewares {
            let neighbours = [("before", before), ("after", after)].into_iter().filter(|(_, names)| !names.is_empty());
            let neighbours: String = neighbours.map(|(word, names)| format!("  {word} {}", names.join(", "))).collect();
            // `toolCall` is the longest kind.
            row(f, "middleware", format_args!("{:<8}  {priority:>5}  {function}{neighbours}", kind.as_str()))?;
        }
        let longest = self.tools.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
        for Tool { name, description, .. } in &self.tools {
            row(f, "tool", format_args!("{name:<longest$}  {description}"))?;
        }
        self.subscriptions.iter().try_for_each(|pattern| row(f, "listens to", pattern))?;
        self.requires.iter().try_for_each(|capability| row(f, "requires", capability))?;
        let Some(InLibrary { entry, called, size }) = &self.library else { return Ok(()) };
        let called = if *called == self.name { String::new() } else { format!(", called {called}") };
        row(f, "entry", format_args!("{entry}{called}"))?;
        row(f, "size", format_args!("{size} bytes"))
    }
}

pub(super) fn row(f: &mut impl fmt::Write, label: &str, value: impl Display) -> fmt::Result {
    let row = format!("  {label:<12}{value}");
    writeln!(f, "{}", row.trim_end())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
