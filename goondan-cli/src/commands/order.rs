//! Owns `goondan order`: the onion of each kind of middleware, and why each layer lies where it does.

use std::borrow::Cow;
use std::fmt::Write as _;

use goondan::bundle::Plugins;
use goondan::{Error, Instance, LayerInfo, MemoryStore, MiddlewareKind, Result};
use serde::Serialize;

use super::bundle;
use crate::args::OrderArgs;
use crate::outcome::Outcome;
use crate::output;
use crate::output::diagnostics::Refusal;

const KINDS: [MiddlewareKind; 3] = [MiddlewareKind::Turn, MiddlewareKind::Step, MiddlewareKind::ToolCall];

/// A layer as it is shown.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    layer: LayerInfo,
    why: String,
}

/// Registers the extensions of an agent over an empty store, and shows what came of it: what `#[init]` registers by hand is
/// among it, and nothing of a conversation is touched.
pub(crate) fn order(args: &OrderArgs) -> Result<Outcome> {
    match text(args) {
        Ok(text) => output::print(&text).map(|()| Outcome::Done),
        Err(refusal) => refusal.outcome(args.json),
    }
}

fn text(args: &OrderArgs) -> Result<String, Refusal> {
    let plugins = Plugins::new();
    let bundle = bundle::read(&args.bundle, &plugins)?;
    bundle.check_values()?;
    let entry = bundle::agent(&bundle, args.agent.as_deref())?.name.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::from)?;
    let text = runtime.block_on(async {
        let agents = bundle.build_with(MemoryStore::new(), &plugins).await?;
        let agent = agents.get(entry.as_str()).ok_or_else(|| Error::msg("a built bundle has its agents"))?;
        let instance = agent.instance("order").await?;
        let text = if args.json { json(&onions(&instance).await?)? } else { onion(&instance).await? };
        instance.close().await?;
        Ok::<_, Error>(text)
    })?;
    Ok(text)
}

/// The onion of each kind around a conversation, for people.
pub(crate) async fn onion(instance: &Instance) -> Result<String> {
    Ok(page(&onions(instance).await?))
}

async fn onions(instance: &Instance) -> Result<[(MiddlewareKind, Vec<Shown>); 3]> {
    let mut onions = KINDS.map(|kind| (kind, Vec::new()));
    for (kind, layers) in &mut onions {
        *layers = explain(&instance.layers(*kind).await?);
    }
    Ok(onions)
}

/// Every layer with the reason why it does not lie further out.
fn explain(layers: &[LayerInfo]) -> Vec<Shown> {
    let outer = std::iter::once(None).chain(layers.iter().map(Some));
    layers
        .iter()
        .zip(outer)
        .map(|(layer, outer)| Shown { layer: layer.clone(), why: why(layer, outer, layers) })
        .collect()
}

fn why(layer: &LayerInfo, outer: Option<&LayerInfo>, all: &[LayerInfo]) -> String {
    match outer {
        None if all.iter().any(|other| other.priority < layer.priority) => {
            "outermost: what has a lower priority must lie inside of others".to_owned()
        }
        None => "outermost: the lowest priority".to_owned(),
        Some(outer) if outer.must_be_outside_of(layer) => by_name(layer, outer),
        Some(outer) if outer.priority < layer.priority => {
            format!("priority {} lies inside of {}", layer.priority, outer.priority)
        }
        Some(outer) => format!("registered after `{}`, at the same priority", outer.extension),
    }
}

fn by_name(layer: &LayerInfo, outer: &LayerInfo) -> String {
    let says = |names: &[_], other: &LayerInfo| {
        names.iter().any(|name: &Cow<'_, str>| name.trim_end_matches('?') == other.extension.as_str())
    };
    match says(&layer.after, outer) {
        true => format!("says `after = \"{}\"`", outer.extension),
        false => format!("`{}` says `before = \"{}\"`", outer.extension, layer.extension),
    }
}

fn page(onions: &[(MiddlewareKind, Vec<Shown>)]) -> String {
    let mut page = String::new();
    for (kind, layers) in onions {
        // Writing into a string does not fail.
        _ = writeln!(page, "{kind}");
        let longest = |text: fn(&LayerInfo) -> usize| layers.iter().map(|shown| text(&shown.layer)).max().unwrap_or(0);
        let (name, function) = (longest(|layer| layer.extension.as_str().len()), longest(|layer| layer.function.len()));
        for Shown { layer, why } in layers {
            let LayerInfo { extension, function: called, priority, .. } = layer;
            let extension = extension.as_str();
            _ = writeln!(page, "  {extension:<name$}  {called:<function$}  {priority:>5}  {why}");
        }
        _ = writeln!(page, "  {}", core(*kind));
    }
    page
}

/// What the onion is around.
fn core(kind: MiddlewareKind) -> &'static str {
    match kind {
        MiddlewareKind::Turn => "(the steps of the turn)",
        MiddlewareKind::Step => "(the model call and the tool calls)",
        MiddlewareKind::ToolCall => "(the handler of the tool)",
    }
}

fn json(onions: &[(MiddlewareKind, Vec<Shown>)]) -> Result<String> {
    let object: serde_json::Map<_, _> = onions
        .iter()
        .map(|(kind, layers)| Ok((kind.to_string(), serde_json::to_value(layers)?)))
        .collect::<Result<_>>()?;
    Ok(serde_json::to_string(&object)? + "\n")
}
