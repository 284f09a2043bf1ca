//! Owns `goondan plugin list`: the extensions that are linked into this program, for people and for programs.

use std::fmt::{self, Display, Write as _};

use goondan::{Effect, ExtensionDescriptor, MiddlewareKind, Result, linked};
use serde::Serialize;

use crate::args::PluginListArgs;

/// An extension as `--json` shows it.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    version: &'static str,
    package: &'static str,
    description: &'static str,
    middlewares: Vec<Middleware>,
    tools: Vec<Tool>,
    subscriptions: &'static [&'static str],
    requires: &'static [&'static str],
}

#[derive(Serialize)]
struct Middleware {
    kind: MiddlewareKind,
    function: &'static str,
    priority: i32,
    before: &'static [&'static str],
    after: &'static [&'static str],
}

#[derive(Serialize)]
struct Tool {
    name: &'static str,
    description: &'static str,
    effect: Effect,
}

pub(crate) fn list(args: &PluginListArgs) -> Result<()> {
    let all: Vec<_> = linked().into_iter().map(Listed::new).collect();
    let text = if args.json {
        serde_json::to_string(&all)? + "\n"
    } else if all.is_empty() {
        "No extension is linked into this program.\n".to_owned()
    } else {
        all.iter().map(Listed::to_string).collect::<Vec<_>>().join("\n")
    };
    crate::print(&text)
}

impl Listed {
    fn new(descriptor: &'static ExtensionDescriptor) -> Self {
        let middlewares = descriptor.middlewares.iter();
        let tools = descriptor.tools.iter();
        Self {
            name: descriptor.name,
            version: descriptor.version,
            package: descriptor.package,
            description: first_line(descriptor.description),
            middlewares: middlewares
                .map(|layer| Middleware {
                    kind: layer.kind,
                    function: layer.function,
                    priority: layer.priority,
                    before: layer.before,
                    after: layer.after,
                })
                .collect(),
            tools: tools
                .map(|tool| Tool { name: tool.name, description: first_line(tool.description), effect: tool.effect })
                .collect(),
            subscriptions: descriptor.subscriptions,
            requires: descriptor.requires,
        }
    }
}

/// One paragraph for each extension: its first line, and below it what it has, in columns.
impl Display for Listed {
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
        self.requires.iter().try_for_each(|capability| row(f, "requires", capability))
    }
}

fn row(f: &mut fmt::Formatter<'_>, label: &str, value: impl Display) -> fmt::Result {
    let row = format!("  {label:<12}{value}");
    writeln!(f, "{}", row.trim_end())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
