//! Owns the order of the layers.

use super::LayerInfo;

/// Sorts what was registered, in registration order, from the outermost to the innermost layer: by priority, the lower the
/// further out (ORDER-05, ORDER-06); equals keep their registration order (ORDER-01).
///
/// ```
/// use goondan_core::pipeline::{LayerInfo, in_order};
/// use goondan_core::{ExtensionName, MiddlewareKind};
///
/// let layer = |name, priority| {
///     let extension = ExtensionName::new(name).unwrap();
///     (LayerInfo { extension, kind: MiddlewareKind::Step, function: "".into(), priority }, ())
/// };
/// let order = in_order(vec![layer("a", 10), layer("b", 5), layer("c", 10)]); // ORDER-10
/// assert_eq!(order.iter().map(|(info, ())| info.extension.as_str()).collect::<Vec<_>>(), ["b", "a", "c"]);
/// ```
pub fn in_order<T>(mut registered: Vec<(LayerInfo, T)>) -> Vec<(LayerInfo, T)> {
    registered.sort_by_key(|(info, _)| info.priority);
    registered
}
