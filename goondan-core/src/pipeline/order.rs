//! Owns the order of the layers: constraints by name, then priorities, then the order of registration.

use super::LayerInfo;
use crate::error::{Error, ErrorCode, Result};
use crate::name::ExtensionName;

/// Sorts what was registered, in registration order, from the outermost to the innermost layer. Who is before or after whom
/// by name comes first (ORDER-11); what that leaves open is sorted by priority, the lower the further out (ORDER-05,
/// ORDER-06); equals keep their registration order (ORDER-01). `extensions` are all that the agent has, whether they have
/// layers or not.
///
/// # Errors
/// `E_EXT_ORDER` for a constraint on an extension that is not there, unless its name ends in `?`, and for constraints that
/// contradict one another: the message shows the cycle.
///
/// ```
/// use goondan_core::pipeline::{LayerInfo, in_order};
/// use goondan_core::{ExtensionName, MiddlewareKind, Options};
///
/// let all = ["a", "b", "c"].map(|name| ExtensionName::new(name).unwrap());
/// let layer = |index: usize, options| (LayerInfo::new(all[index].clone(), MiddlewareKind::Step, options), ());
/// let names = |layers: Vec<(LayerInfo, ())>| layers.iter().map(|(info, ())| info.extension.to_string()).collect::<String>();
///
/// let layers = vec![layer(0, Options::priority(10)), layer(1, Options::priority(5)), layer(2, Options::priority(10))];
/// assert_eq!(names(in_order(layers, &all)?), "bac"); // ORDER-10
///
/// let layers = vec![layer(0, Options::default()), layer(1, Options::default().before("a"))];
/// assert_eq!(names(in_order(layers, &all)?), "ba");
/// # Ok::<(), goondan_core::Error>(())
/// ```
pub fn in_order<T>(registered: Vec<(LayerInfo, T)>, extensions: &[ExtensionName]) -> Result<Vec<(LayerInfo, T)>> {
    let infos: Vec<_> = registered.iter().map(|(info, _)| info).collect();
    infos.iter().try_for_each(|info| are_there(info, extensions))?;
    let order = indices_in_order(&infos)?;
    let mut layers: Vec<_> = registered.into_iter().map(Some).collect();
    // Every index stands in the order once.
    Ok(order.into_iter().filter_map(|index| layers.get_mut(index)?.take()).collect())
}

/// The next layer is always the first of those that need not wait for one that is not placed yet.
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
    /// Whether a constraint of either layer puts this one outside of `inner`.
    pub fn must_be_outside_of(&self, inner: &Self) -> bool {
        names(&self.before, &inner.extension) || names(&inner.after, &self.extension)
    }
}

fn names(constraints: &[impl AsRef<str>], extension: &ExtensionName) -> bool {
    constraints.iter().any(|name| wanted(name.as_ref()).0 == extension.as_str())
}

/// The extension that a constraint names, and whether it must be there.
fn wanted(name: &str) -> (&str, bool) {
    name.strip_suffix('?').map_or((name, true), |name| (name, false))
}

fn are_there(info: &LayerInfo, extensions: &[ExtensionName]) -> Result<()> {
    for (option, name) in info.constraints() {
        let (extension, needed) = wanted(name);
        if needed && extensions.iter().all(|known| known.as_str() != extension) {
            let message = format!("`{option} = \"{name}\"` names no extension of the agent");
            return Err(Error::new(ErrorCode::EXT_ORDER, message)
                .suggest(format!("add `{extension}` to the agent, or write `\"{extension}?\"` if it may be missing"))
                .at(&info.extension, info.hook()));
        }
    }
    Ok(())
}

/// The error for layers each of which waits for another one of them.
fn contradiction(infos: &[&LayerInfo], left: &[usize]) -> Error {
    let outer = |index: usize| left.iter().copied().find(|other| infos[*other].must_be_outside_of(infos[index]));
    let mut path: Vec<usize> = left.first().copied().into_iter().collect();
    // Going outwards, some layer comes again: there are not infinitely many.
    while let Some(next) = path.last().and_then(|last| outer(*last)) {
        let seen = path.iter().position(|index| *index == next);
        path.push(next);
        if let Some(seen) = seen {
            path.drain(..seen);
            break;
        }
    }
    path.reverse();
    let circle: Vec<_> = path.iter().map(|index| infos[*index].extension.as_str()).collect();
    let reasons: Vec<_> = path.windows(2).map(|pair| reason(infos[pair[0]], infos[pair[1]])).collect();
    let kind = path.first().map_or("", |index| infos[*index].kind.as_str());
    let message = format!("the {kind} middlewares cannot be ordered: {} ({})", circle.join(" → "), reasons.join("; "));
    Error::new(ErrorCode::EXT_ORDER, message).suggest("take one of these constraints away, or one of the extensions")
}

fn reason(outer: &LayerInfo, inner: &LayerInfo) -> String {
    let (who, option, whom) = match names(&outer.before, &inner.extension) {
        true => (outer, "before", inner),
        false => (inner, "after", outer),
    };
    format!("`{}` of `{}` says `{option} = \"{}\"`", who.function, who.extension, whom.extension)
}
