//! Owns the check of what lies around an agent: whether its layers can be brought into an order (ORDER-11).

use goondan_core::pipeline::in_order;
use goondan_core::{Error, ErrorCode, ExtensionName, LayerInfo, MiddlewareKind};

use crate::configs::Configs;
use crate::field::Field;
use crate::resource::ExtensionRef;

/// A layer, and which use of an extension it comes with.
type Layer = (LayerInfo, usize);

/// Reports the layers that cannot be ordered, as far as they are known before `#[init]`. `uses` are all extensions of an
/// agent, and where it lists them.
pub(crate) fn check_order(uses: &[(ExtensionRef, Field<'_>)], configs: &Configs<'_>) {
    let names: Vec<_> = uses.iter().map(|(used, _)| used.target.name.clone()).collect();
    for kind in [MiddlewareKind::Turn, MiddlewareKind::Step, MiddlewareKind::ToolCall] {
        let layers = uses.iter().enumerate().flat_map(|(index, (used, _))| {
            let declared = configs.layers(used).into_iter().filter(move |layer| layer.kind == kind);
            declared.map(move |layer| (layer, index))
        });
        for (error, index) in contradictions(&layers.collect::<Vec<_>>(), &names) {
            let (message, remedy) = (error.to_string(), error.suggestion().unwrap_or_default().to_owned());
            uses[index].1.refuse(ErrorCode::EXT_ORDER, message, remedy);
        }
    }
}

/// What is wrong, and with which use of an extension it came: each layer that misses another one, else the circle.
fn contradictions(layers: &[Layer], names: &[ExtensionName]) -> Vec<(Error, usize)> {
    let alone = |layer: &Layer| Some((in_order(vec![layer.clone()], names).err()?, layer.1));
    let missing: Vec<_> = layers.iter().filter_map(alone).collect();
    if !missing.is_empty() {
        return missing;
    }
    let Err(circle) = in_order(layers.to_vec(), names) else { return missing };
    // The use that closes the circle: without it there would be an order.
    let closes = |index: &usize| {
        let before: Vec<_> = layers.iter().filter(|layer| layer.1 <= *index).cloned().collect();
        in_order(before, names).is_err()
    };
    let last = layers.iter().map(|layer| layer.1).find(closes);
    last.map(|index| (circle, index)).into_iter().collect()
}
