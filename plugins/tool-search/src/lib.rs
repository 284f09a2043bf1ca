//! Lets the model search the tools, and offers it those that it found.
//!
//! This file has the config, the middleware and the tool, `find` the search.
// PATTERN-SEARCH, F-BASE

mod find;

use std::collections::BTreeMap;

use goondan::Value;
use goondan::prelude::*;
use goondan::tool::{Presentation, ShownCall, ToolCatalog, ToolOutcome};
use goondan_lock::Lock;
use wildmatch::WildMatch;

use find::Hit;

/// The name of the search tool.
const SEARCH: &str = "tool-search__search";

/// The config of the extension.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The tools that are always offered: names, in which `*` matches any text and `?` one character.
    pub always: Vec<String>,
    /// The catalog is reduced only if it has at least this number of tools.
    pub threshold: usize,
    /// The largest number of tools that a search finds.
    #[schemars(range(min = 1))]
    pub max_results: usize,
    /// The smallest number of characters of a query.
    pub min_query_length: usize,
    /// The largest number of tools that are offered because they were found. With one more, those that were found
    /// longest ago are closed, to half of it.
    #[schemars(range(min = 1))]
    pub max_open: usize,
    /// Whether the selection outlasts the turn in which it was made.
    pub persist_selection: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            always: vec!["skills__*".to_owned()],
            threshold: 0,
            max_results: 10,
            min_query_length: 1,
            max_open: 40,
            persist_selection: true,
        }
    }
}

/// The extension.
#[derive(Debug)]
pub struct ToolSearch {
    api: ExtensionApi,
    config: Config,
    always: Vec<WildMatch>,
    /// The tools of the running step before they are reduced: a search finds also those that are not offered.
    catalog: Lock<ToolCatalog>,
}

/// The state: what was found, in the order in which it was.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Selection {
    selected_tools: Vec<String>,
    last_query: String,
    /// The selection when the running step began, once a search has changed it: that is from the next step on.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_this_step: Option<Vec<String>>,
}

/// The input of `search`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Query {
    /// Words that occur in the name or the description of a tool.
    query: String,
    /// The largest number of tools to find.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

/// The output of `search`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    query: String,
    results: Vec<Hit>,
    /// The found tools that are offered from the next step on, in the order in which they were found.
    selected_tools: Vec<String>,
    /// If nothing was found, how many tools there are in each group: the part of their names before `__`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    groups: BTreeMap<String, usize>,
}

/// Presents a search: its words, and the number of tools that it found.
// PRESENT-01
fn shown(call: &ShownCall<'_>) -> Presentation {
    let presentation = Presentation::new(call.arg("query"));
    match call.output("results").and_then(Value::as_array).map(Vec::len) {
        Some(found) => presentation.outcome(ToolOutcome::ok(format!("{found} found"))),
        None => presentation,
    }
}

/// Lets the model search the tools, and offers it those that it found.
#[goondan::extension(name = "tool-search")]
impl ToolSearch {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Self {
        let always = config.always.iter().map(|pattern| WildMatch::new(pattern)).collect();
        Self { api, config, always, catalog: Lock::default() }
    }

    /// Offers the selected tools, after those that are always offered: a tool that is found does not move others, so
    /// that as much as possible of the request stays as it was (CACHE-01). Layers further out have added and withdrawn
    /// theirs by now.
    #[middleware(step, priority = -300)]
    async fn reduce(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let all = ctx.tool_catalog().clone();
        let selected_tools = self.selected_for(ctx)?;
        if !selected_tools.is_empty() && all.len() >= self.config.threshold {
            // C-24: the search tool stays.
            let is_always = |name: &str| name == SEARCH || self.always.iter().any(|pattern| pattern.matches(name));
            let offered = ctx.tool_catalog_mut();
            offered.retain(|tool| is_always(tool.name.as_str()));
            let selected = selected_tools.iter().filter(|name| !is_always(name));
            for tool in selected.filter_map(|name| all.get(name)) {
                offered.insert(tool.clone());
            }
        }
        *self.catalog.lock() = all;
        next.run(ctx).await
    }

    /// Searches all tools, also those that are not offered. The tools that it finds are offered from the next step on,
    /// beside those of the searches before.
    #[tool(name = "tool-search__search", effect = idempotent, present = shown)]
    async fn search(&self, input: Query) -> Result<Found> {
        let Query { query, limit } = input;
        let Config { max_results, min_query_length, .. } = self.config;
        if query.trim().chars().count() < min_query_length {
            return Err(Error::new(
                "E_TOOL_SEARCH_QUERY",
                format!("the query has less than {min_query_length} characters"),
            )
            .suggest("search for words of the names or descriptions of tools"));
        }
        let catalog = self.catalog.lock().clone();
        let tools = || catalog.iter().filter(|tool| tool.name != *SEARCH);
        let results = find::find(tools(), &query, limit.unwrap_or(max_results).min(max_results));
        if results.is_empty() {
            let Selection { selected_tools, .. } = self.stored()?;
            return Ok(Found { query, results, selected_tools, groups: find::groups(tools()) });
        }
        let Selection { mut selected_tools, in_this_step, .. } = self.stored()?;
        let in_this_step = in_this_step.or_else(|| Some(selected_tools.clone()));
        let is_new = |hit: &&Hit| !selected_tools.contains(&hit.name);
        let new: Vec<_> = results.iter().filter(is_new).map(|hit| hit.name.clone()).collect();
        if selected_tools.len() + new.len() > self.config.max_open {
            // Many at a time, and then none for as long: each time, the requests begin anew. What was found now stays.
            let found = |name: &String| results.iter().any(|hit| hit.name == *name);
            let excess = (selected_tools.len() + new.len()).saturating_sub(self.config.max_open.div_ceil(2));
            let mut closed = 0;
            selected_tools.retain(|name| {
                closed += 1;
                closed > excess || found(name)
            });
        }
        selected_tools.extend(new);
        let (selected, last_query) = (selected_tools.clone(), query.clone());
        self.api.state().set(&Selection { selected_tools: selected, last_query, in_this_step })?;
        Ok(Found { query, results, selected_tools, groups: BTreeMap::new() })
    }
}

impl ToolSearch {
    fn stored(&self) -> Result<Selection> {
        Ok(self.api.state().get()?.unwrap_or_default())
    }

    /// Returns the tools that are selected for a step.
    fn selected_for(&self, ctx: &StepContext<'_>) -> Result<Vec<String>> {
        let mut selection = self.stored()?;
        if ctx.is_repeated() {
            // RESUME-01: the calls that are left find the tools that the model was offered.
            return Ok(selection.in_this_step.unwrap_or(selection.selected_tools));
        }
        let was_changed = selection.in_this_step.take().is_some();
        if ctx.step_index() > 0 || self.config.persist_selection || selection.selected_tools.is_empty() {
            if was_changed {
                self.api.state().set(&selection)?;
            }
            return Ok(selection.selected_tools);
        }
        self.api.state().set(&Selection::default())?;
        Ok(Vec::new())
    }
}
