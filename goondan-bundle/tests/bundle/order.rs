//! Extensions of an agent that cannot be ordered are errors before anything runs.

use goondan_bundle::{Bundle, KnownExtension};
use goondan_core::{MiddlewareDescriptor, MiddlewareKind};
use goondan_covers::covers;
use serde_json::json;

use crate::fixture::{MODEL, bundle_of, code};

const fn layer(before: &'static [&'static str], after: &'static [&'static str]) -> MiddlewareDescriptor {
    MiddlewareDescriptor::new(MiddlewareKind::Step, "wrap").before(before).after(after)
}

const OUTER: &[MiddlewareDescriptor] = &[layer(&["inner"], &[])];
const INNER: &[MiddlewareDescriptor] = &[layer(&[], &[])];
const STUBBORN: &[MiddlewareDescriptor] = &[layer(&["outer"], &["inner"])];
const LENIENT: &[MiddlewareDescriptor] = &[layer(&["nobody?"], &[])];

/// The errors of an agent that lists these extensions in this order.
#[cfg(test)]
fn errors(uses: &[&str]) -> Vec<String> {
    let known = [("outer", OUTER), ("inner", INNER), ("stubborn", STUBBORN), ("lenient", LENIENT)].map(
        |(name, middlewares)| {
            let mut known = KnownExtension::new(name, json!({}));
            known.middlewares = middlewares;
            known
        },
    );
    let head = "apiVersion: goondan.ai/v1\nkind: ";
    let mut documents: Vec<_> = known
        .iter()
        .map(|KnownExtension { name, .. }| {
            format!("{head}Extension\nmetadata: {{ name: {name} }}\nspec: {{ entry: \"linked:{name}\" }}\n")
        })
        .collect();
    let list: String = uses.iter().map(|name| format!("    - ref: Extension/{name}\n")).collect();
    let agent = format!("{head}Agent\nmetadata: {{ name: main }}\nspec:\n  model: Model/main\n  extensions:\n{list}");
    documents.insert(0, agent);
    documents.push(MODEL.to_owned());
    let documents: Vec<_> = documents.iter().map(String::as_str).collect();
    match Bundle::check_with(bundle_of(&documents).path(), &known) {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .iter()
            .map(|error| format!("{} {} {}: {}", error.place.unwrap(), error.path, code(error), error.message))
            .collect(),
    }
}

#[test]
fn extensions_that_can_be_ordered_are_no_error() {
    assert_eq!(errors(&["inner", "outer", "lenient"]), [""; 0]);
}

#[test]
#[covers("ORDER-11")]
fn cycle_is_reported_at_the_extension_that_closes_it() {
    assert_eq!(
        errors(&["inner", "outer", "stubborn", "lenient"]),
        ["9:12 spec.extensions[2].ref E_EXT_ORDER: the step middlewares cannot be ordered: \
             inner → stubborn → outer → inner (`wrap` of `stubborn` says `after = \"inner\"`; \
             `wrap` of `stubborn` says `before = \"outer\"`; `wrap` of `outer` says `before = \"inner\"`)"]
    );
}

#[test]
#[covers("ORDER-11")]
fn missing_neighbours_are_reported_at_each_extension_that_names_one() {
    assert_eq!(
        errors(&["outer", "stubborn"]),
        [
            "7:12 spec.extensions[0].ref E_EXT_ORDER: extension `outer`, step middleware `wrap`: \
             `before = \"inner\"` names no extension of the agent",
            "8:12 spec.extensions[1].ref E_EXT_ORDER: extension `stubborn`, step middleware `wrap`: \
             `after = \"inner\"` names no extension of the agent"
        ]
    );
    // The missing extension may be the one that cannot be resolved.
    let errors = errors(&["outer", "inner-one"]);
    assert!(errors.len() == 1 && errors[0].contains("E_CONFIG_REF_NOT_FOUND"), "{errors:?}");
}
