//! `goondan order`: the chain of each kind of middleware, and why each layer has its position.

use std::borrow::Cow;
use std::fmt::Write as _;

use goondan::bundle::{Entry, Plugins};
use goondan::host::OpenError;
use goondan::middleware::{LayerInfo, MiddlewareKind};
use goondan::store::state_root;
use goondan::{Error, Instance, Result};
use serde::Serialize;

use super::{bundle, trust};
use crate::args::OrderArgs;
use crate::outcome::Outcome;
use crate::output::{self, diagnostics};

/// A layer, and the reason for its position.
#[derive(Serialize)]
struct ExplainedLayer {
    #[serde(flatten)]
    layer: LayerInfo,
    why: String,
}

/// Prints the chains of an agent. They include layers that `#[init]` registers at run time: the extensions are
/// initialized for an instance in an empty store in memory, so stored conversations are not touched, and are told so.
pub(crate) fn order(args: &OrderArgs) -> Result<Outcome> {
    match text(args) {
        Ok(text) if args.json => output::print_data(text).map(|()| Outcome::Done),
        Ok(text) => output::print(&text).map(|()| Outcome::Done),
        Err(error) => diagnostics::refused(error, args.json),
    }
}

fn text(args: &OrderArgs) -> Result<String, OpenError> {
    let plugins = Plugins::new();
    let bundle = bundle::read(&args.bundle, &plugins)?;
    let mut used = bundle.agents().flat_map(|agent| &agent.extensions);
    // Code of other extensions is told that nothing runs: see `InitContext::inspect`.
    if !args.trust && used.any(|used| matches!(used.target.entry, Entry::Library(_))) {
        trust::require(&bundle, &args.bundle.path, &state_root(None)?, !args.json)?;
    }
    bundle.check_values()?;
    let entry = bundle::agent(&bundle, args.agent.as_deref())?.name.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::from)?;
    let text = runtime.block_on(async {
        let agents = bundle.build_to_inspect(&plugins).await?;
        let agent = agents.get(entry.as_str()).ok_or_else(|| Error::msg("a built bundle has its agents"))?;
        let instance = agent.instance("order").await?;
        let text = if args.json { json(&chains(&instance).await?)? } else { page(&instance).await? };
        instance.close().await?;
        Ok::<_, Error>(text)
    })?;
    Ok(text)
}

/// Returns the chain of each kind of an instance, as text.
pub(crate) async fn page(instance: &Instance) -> Result<String> {
    Ok(table(&chains(instance).await?))
}

async fn chains(instance: &Instance) -> Result<[(MiddlewareKind, Vec<ExplainedLayer>); 3]> {
    let mut chains = MiddlewareKind::ALL.map(|kind| (kind, Vec::new()));
    for (kind, layers) in &mut chains {
        *layers = explain(&instance.layers(*kind).await?);
    }
    Ok(chains)
}

/// Adds to each layer the reason why it is not further out.
fn explain(layers: &[LayerInfo]) -> Vec<ExplainedLayer> {
    let outer = std::iter::once(None).chain(layers.iter().map(Some));
    layers
        .iter()
        .zip(outer)
        .map(|(layer, outer)| ExplainedLayer { layer: layer.clone(), why: why(layer, outer, layers) })
        .collect()
}

fn why(layer: &LayerInfo, outer: Option<&LayerInfo>, all: &[LayerInfo]) -> String {
    match outer {
        None if all.iter().any(|other| other.priority < layer.priority) => {
            "outermost: layers with a lower priority must be inside others".to_owned()
        }
        None => "outermost: the lowest priority".to_owned(),
        Some(outer) if outer.must_be_outside_of(layer) => named_by(layer, outer),
        Some(outer) if outer.priority < layer.priority => {
            format!("priority {} is inside of {}", layer.priority, outer.priority)
        }
        Some(outer) => format!("registered after `{}`, at the same priority", outer.extension),
    }
}

fn named_by(layer: &LayerInfo, outer: &LayerInfo) -> String {
    let names_it = |names: &[_], other: &LayerInfo| {
        names.iter().any(|name: &Cow<'_, str>| name.trim_end_matches('?') == other.extension.as_str())
    };
    match names_it(&layer.after, outer) {
        true => format!("says `after = \"{}\"`", outer.extension),
        false => format!("`{}` says `before = \"{}\"`", outer.extension, layer.extension),
    }
}

fn table(chains: &[(MiddlewareKind, Vec<ExplainedLayer>)]) -> String {
    let mut table = String::new();
    for (kind, layers) in chains {
        // Writing to a string does not fail.
        _ = writeln!(table, "{kind}");
        let longest =
            |text: fn(&LayerInfo) -> usize| layers.iter().map(|explained| text(&explained.layer)).max().unwrap_or(0);
        let (name, function) = (longest(|layer| layer.extension.as_str().len()), longest(|layer| layer.function.len()));
        for ExplainedLayer { layer, why } in layers {
            let LayerInfo { extension, function: called, priority, .. } = layer;
            let extension = extension.as_str();
            _ = writeln!(table, "  {extension:<name$}  {called:<function$}  {priority:>5}  {why}");
        }
        _ = writeln!(table, "  {}", core(*kind));
    }
    table
}

/// Describes the core of a chain.
fn core(kind: MiddlewareKind) -> &'static str {
    match kind {
        MiddlewareKind::Turn => "(the steps of the turn)",
        MiddlewareKind::Step => "(the model call and the tool calls)",
        MiddlewareKind::ToolCall => "(the handler of the tool)",
        _ => "(the core)",
    }
}

fn json(chains: &[(MiddlewareKind, Vec<ExplainedLayer>)]) -> Result<String> {
    let object: serde_json::Map<_, _> = chains
        .iter()
        .map(|(kind, layers)| Ok((kind.to_string(), serde_json::to_value(layers)?)))
        .collect::<Result<_>>()?;
    Ok(serde_json::to_string(&object)? + "\n")
}
