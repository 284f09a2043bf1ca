//! Orders the layers of a chain: by constraints, then by priority, then by registration.

use super::LayerInfo;
use crate::error::{Error, ErrorCode, Result};
use crate::name::ExtensionName;

/// Returns `registered`, which is in registration order, from the outermost to the innermost layer. Constraints by name
/// (`before`, `after`) are satisfied first, and guards of the swarm are outside of all others; among the layers that
/// they leave open, a lower priority is further out; layers with equal priority keep their registration order.
/// `extensions` are all extensions of the agent, with or without layers.
///
/// # Errors
/// `E_EXT_ORDER` for a constraint that names an extension that the agent does not have, unless the name ends in `?`,
/// and for constraints that contradict each other: the message shows the cycle.
///
/// ```
/// use goondan::middleware::{LayerInfo, MiddlewareKind, MiddlewareOptions};
/// use goondan::name::ExtensionName;
/// use goondan_core::host::in_order;
///
/// let all = ["a", "b", "c"].map(|name| ExtensionName::new(name).unwrap());
/// let layer = |index: usize, options| (LayerInfo::new(all[index].clone(), MiddlewareKind::Step, options), ());
/// let names = |layers: Vec<(LayerInfo, ())>| -> String {
///     layers.iter().map(|(info, ())| info.extension.to_string()).collect()
/// };
///
/// let priorities = [10, 5, 10].into_iter().map(MiddlewareOptions::priority);
/// let layers = priorities.enumerate().map(|(index, options)| layer(index, options)).collect();
/// assert_eq!(names(in_order(layers, &all)?), "bac");
///
/// let layers = vec![layer(0, MiddlewareOptions::default()), layer(1, MiddlewareOptions::default().before("a"))];
/// assert_eq!(names(in_order(layers, &all)?), "ba");
/// # Ok::<(), goondan::Error>(())
/// ```
// ORDER-01, ORDER-05, ORDER-06, ORDER-11
pub fn in_order<T>(registered: Vec<(LayerInfo, T)>, extensions: &[ExtensionName]) -> Result<Vec<(LayerInfo, T)>> {
    let infos: Vec<_> = registered.iter().map(|(info, _)| info).collect();
    infos.iter().try_for_each(|info| check_constraints(info, extensions))?;
    let order = indices_in_order(&infos)?;
    let mut layers: Vec<_> = registered.into_iter().map(Some).collect();
    // Each index occurs once in `order`.
    Ok(order.into_iter().filter_map(|index| layers.get_mut(index)?.take()).collect())
}

/// A topological sort: each time, the first remaining layer that no other remaining layer must be outside of is taken.
fn indices_in_order(infos: &[&LayerInfo]) -> Result<Vec<usize>> {
    let mut left: Vec<_> = (0..infos.len()).collect();
    left.sort_by_key(|index| infos[*index].priority);
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |index: usize| left.iter().any(|other| infos[*other].must_be_outside_of(infos[index]));
        let Some(free) = left.iter().position(|index| !waits(*index)) else {
            return Err(contradiction(infos, &left));
        };
        order.push(left.remove(free));
    }
    Ok(order)
}

impl LayerInfo {
    /// Returns whether a constraint of either layer requires this one to be outside of `inner`, or this one alone
    /// guards the swarm.
    pub fn must_be_outside_of(&self, inner: &Self) -> bool {
        self.guards_swarm && !inner.guards_swarm
            || names(&self.before, &inner.extension)
            || names(&inner.after, &self.extension)
    }
}

fn names(constraints: &[impl AsRef<str>], extension: &ExtensionName) -> bool {
    constraints.iter().any(|name| parse(name.as_ref()).0 == extension.as_str())
}

/// Splits a constraint into the name of the extension, and whether the extension is required.
fn parse(name: &str) -> (&str, bool) {
    name.strip_suffix('?').map_or((name, true), |name| (name, false))
}

/// Returns an error if a required constraint of `info` names none of `extensions`.
fn check_constraints(info: &LayerInfo, extensions: &[ExtensionName]) -> Result<()> {
    for (option, name) in info.constraints() {
        let (extension, required) = parse(name);
        if required && extensions.iter().all(|known| known.as_str() != extension) {
            let message = format!("`{option} = \"{name}\"` names no extension of the agent");
            return Err(Error::new(ErrorCode::EXT_ORDER, message)
                .suggest(format!("add `{extension}` to the agent, or write `\"{extension}?\"` if it may be missing"))
                .at(&info.extension, info.part()));
        }
    }
    Ok(())
}

/// Returns the error for remaining layers that must each be inside of another one.
fn contradiction(infos: &[&LayerInfo], left: &[usize]) -> Error {
    let outer = |index: usize| left.iter().copied().find(|other| infos[*other].must_be_outside_of(infos[index]));
    let mut path: Vec<usize> = left.first().copied().into_iter().collect();
    // Going outwards from any of them, a layer repeats after finitely many steps: that is the cycle.
    while let Some(next) = path.last().and_then(|last| outer(*last)) {
        let seen = path.iter().position(|index| *index == next);
        path.push(next);
        if let Some(seen) = seen {
            path.drain(..seen);
            break;
        }
    }
    path.reverse();
    let cycle: Vec<_> = path.iter().map(|index| infos[*index].extension.as_str()).collect();
    let reasons: Vec<_> = path.windows(2).map(|pair| reason(infos[pair[0]], infos[pair[1]])).collect();
    let kind = path.first().map_or("", |index| infos[*index].kind.as_str());
    let message = format!("the {kind} middlewares cannot be ordered: {} ({})", cycle.join(" → "), reasons.join("; "));
    Error::new(ErrorCode::EXT_ORDER, message).suggest("remove one of these constraints, or one of the extensions")
}

fn reason(outer: &LayerInfo, inner: &LayerInfo) -> String {
    if outer.guards_swarm && !inner.guards_swarm {
        return format!("`{}` guards the swarm", outer.extension);
    }
    let (owner, option, target) = match names(&outer.before, &inner.extension) {
        true => (outer, "before", inner),
        false => (inner, "after", outer),
    };
    format!("`{}` of `{}` says `{option} = \"{}\"`", owner.function, owner.extension, target.extension)
}
