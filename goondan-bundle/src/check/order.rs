//! Checks that the layers of an agent can be ordered (ORDER-11).

use goondan_core::host::in_order;
use goondan_core::{Error, ErrorCode, ExtensionName, LayerInfo, MiddlewareKind};
use goondan_runtime::Covers;

use super::extensions::Extensions;
use crate::resource::ExtensionUse;

/// A layer, and the index of the use of the extension that declares it.
type Layer = (LayerInfo, usize);

/// Reports the layers that cannot be ordered, as far as they are known before `#[init]`. `uses` are all extensions of
/// an agent.
pub(super) fn check(uses: &[ExtensionUse<'_>], extensions: &Extensions<'_>) {
    let names: Vec<_> = uses.iter().map(|each| each.used.target.name.clone()).collect();
    for kind in MiddlewareKind::ALL {
        let layers = uses.iter().enumerate().flat_map(|(index, each)| {
            let guards_swarm = each.used.covers == Covers::Swarm && extensions.guards(&each.used.target);
            let declared = extensions.layers(&each.used.target).into_iter().filter(move |layer| layer.kind == kind);
            declared.map(move |mut layer| {
                layer.guards_swarm = guards_swarm;
                (layer, index)
            })
        });
        for (error, index) in contradictions(&layers.collect::<Vec<_>>(), &names) {
            let (message, remedy) = (error.to_string(), error.suggestion().unwrap_or_default().to_owned());
            uses[index].reference.error(ErrorCode::EXT_ORDER, message, remedy);
        }
    }
}

/// The errors, each with the use of the extension that causes it: one for each layer that names a missing extension, or
/// one for a cycle if no extension is missing.
fn contradictions(layers: &[Layer], names: &[ExtensionName]) -> Vec<(Error, usize)> {
    let alone = |layer: &Layer| Some((in_order(vec![layer.clone()], names).err()?, layer.1));
    let missing: Vec<_> = layers.iter().filter_map(alone).collect();
    if !missing.is_empty() {
        return missing;
    }
    let Err(cycle) = in_order(layers.to_vec(), names) else { return missing };
    // The first use that closes the cycle: the layers before it can be ordered.
    let closes = |index: &usize| {
        let before: Vec<_> = layers.iter().filter(|layer| layer.1 <= *index).cloned().collect();
        in_order(before, names).is_err()
    };
    let closing = layers.iter().map(|layer| layer.1).find(closes);
    closing.map(|index| (cycle, index)).into_iter().collect()
}
