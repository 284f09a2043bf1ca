//! The tools of an open conversation, and the reports of its extensions on themselves, such as whether a server that
//! they use is there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use goondan::tool::{ToolCatalog, ToolItem};
use goondan::{Instance, Result, Value, json};
use serde::Deserialize;
use tokio::time::timeout;

/// The longest time that extensions have for their reports.
const LIMIT: Duration = Duration::from_secs(2);

/// The tools and the reports.
pub(crate) struct Tools {
    catalog: ToolCatalog,
    /// The reports of extensions, by their names.
    reports: BTreeMap<String, String>,
    /// The digests of tools, by the names of extensions and of the tools at their servers.
    digests: BTreeMap<String, BTreeMap<String, String>>,
}

/// The payload of the event `status.report`, with which an extension answers `status.request`.
#[derive(Deserialize)]
struct StatusReport {
    extension: String,
    text: String,
    #[serde(default)]
    digests: BTreeMap<String, String>,
}

impl Tools {
    /// Asks the conversation and its extensions.
    pub(crate) async fn of(instance: &Instance) -> Result<Self> {
        let events = instance.events();
        let mut answers = events.subscribe("status.report")?;
        events.emit("status.request", ()).await?;
        events.settle(LIMIT).await?;
        let (mut reports, mut digests) = (BTreeMap::new(), BTreeMap::new());
        while let Ok(Some(answer)) = timeout(Duration::ZERO, answers.next()).await {
            // Any extension may emit the event, with anything.
            if let Ok(StatusReport { extension, text, digests: of_tools }) = answer.payload() {
                if !of_tools.is_empty() {
                    digests.insert(extension.clone(), of_tools);
                }
                reports.insert(extension, text);
            }
        }
        Ok(Self { catalog: instance.tools().await?, reports, digests })
    }

    /// Returns each tool with the first line of its description, and then the reports.
    pub(crate) fn page(&self) -> String {
        self.page_with(|_| String::new())
    }

    /// Returns the page with the digests by which a bundle can pin tools, as YAML.
    pub(crate) fn page_with_digests(&self) -> String {
        self.page_with(|extension| {
            let Some(digests) = self.digests.get(extension) else { return String::new() };
            let line = |(tool, digest)| format!("    {}: {}\n", json!(tool), json!(digest));
            format!("  tools.pin:\n{}", digests.iter().map(line).collect::<String>())
        })
    }

    fn page_with(&self, details: impl Fn(&str) -> String) -> String {
        let mut page = String::new();
        let width = self.catalog.iter().map(|tool| tool.name.as_str().len()).max().unwrap_or(0);
        // Writing to a string does not fail.
        for tool in self.catalog.iter() {
            _ = writeln!(page, "{:<width$}  {}", tool.name.as_str(), description(tool));
        }
        if page.is_empty() {
            page.push_str("The agent has no tools.\n");
        }
        if !self.reports.is_empty() {
            page.push('\n');
        }
        for (extension, text) in &self.reports {
            _ = writeln!(page, "{extension}: {text}");
            page.push_str(&details(extension));
        }
        page
    }

    pub(crate) fn object(&self) -> Value {
        let tool = |tool: &ToolItem| {
            json!({
                "name": tool.name,
                "description": description(tool),
                "effect": tool.effect,
                "source": tool.source,
            })
        };
        json!({
            "tools": self.catalog.iter().map(tool).collect::<Vec<_>>(),
            "reports": self.reports,
            "digests": self.digests,
        })
    }
}

fn description(tool: &ToolItem) -> &str {
    tool.description.as_deref().and_then(|text| text.lines().next()).unwrap_or_default()
}
