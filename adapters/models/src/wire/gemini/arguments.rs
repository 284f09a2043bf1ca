//! Arguments of a call that arrive in pieces, each with its place.

use serde_json::{Map, Value};

/// The greatest depth of a place, as for values that the runtime takes.
const DEEPEST: usize = 64;

/// Adds a piece, such as `{"jsonPath": "$.days[0].city", "stringValue": "Seo", "willContinue": true}`. Texts grow.
/// Returns `None` if the piece has no place.
pub(super) fn add(arguments: &mut Value, piece: &Value) -> Option<()> {
    let path = piece.get("jsonPath")?.as_str()?;
    let mut slot = arguments;
    for (depth, step) in steps(path.strip_prefix('$')?).enumerate() {
        slot = match step.filter(|_| depth < DEEPEST)? {
            Step::Member(name) => member(slot, name)?,
            Step::Item(index) => item(slot, index)?,
        };
    }
    let value = ["stringValue", "numberValue", "boolValue", "nullValue"].iter().find_map(|name| piece.get(name));
    match (slot, value) {
        (Value::String(text), Some(Value::String(more))) => text.push_str(more),
        // `nullValue` is the name of its only value.
        (slot, _) if piece.get("nullValue").is_some() => *slot = Value::Null,
        (slot, Some(value)) => *slot = value.clone(),
        (_, None) => {}
    }
    Some(())
}

enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

/// Returns the steps of a path such as `.days[0]['city']`. One that cannot be read is `None`, and the last.
fn steps(path: &str) -> impl Iterator<Item = Option<Step<'_>>> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let path = rest.filter(|path| !path.is_empty())?;
        let step = step(path);
        rest = step.as_ref().map(|(_, rest)| *rest);
        Some(step.map(|(step, _)| step))
    })
}

fn step(path: &str) -> Option<(Step<'_>, &str)> {
    if let Some(path) = path.strip_prefix('.') {
        let (name, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
        return Some((Step::Member(name), rest));
    }
    let path = path.strip_prefix('[')?;
    if let Some(quote) = path.chars().next().filter(|quote| ['\'', '"'].contains(quote)) {
        let (name, rest) = path[1..].split_once(quote)?;
        return Some((Step::Member(name), rest.strip_prefix(']')?));
    }
    let (index, rest) = path.split_once(']')?;
    Some((Step::Item(index.parse().ok()?), rest))
}

fn member<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    Some(value.as_object_mut()?.entry(name).or_insert(Value::Null))
}

fn item(value: &mut Value, index: usize) -> Option<&mut Value> {
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    let items = value.as_array_mut()?;
    if index == items.len() {
        items.push(Value::Null);
    }
    items.get_mut(index)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn added(pieces: &[Value]) -> Option<Value> {
        let mut arguments = Value::Null;
        pieces.iter().try_for_each(|piece| add(&mut arguments, piece)).map(|()| arguments)
    }

    #[test]
    fn pieces_go_to_their_places() {
        let pieces = [
            json!({ "jsonPath": "$.days[0].city", "stringValue": "Seo", "willContinue": true }),
            json!({ "jsonPath": "$.days[0].city", "stringValue": "ul" }),
            json!({ "jsonPath": "$.days[0]['wind.max']", "numberValue": 0.5 }),
            json!({ "jsonPath": "$.days[1].city", "nullValue": "NULL_VALUE" }),
            json!({ "jsonPath": "$.exact", "boolValue": true }),
            json!({ "jsonPath": "$.nothing" }),
        ];
        let expected = json!({
            "days": [{ "city": "Seoul", "wind.max": 0.5 }, { "city": null }],
            "exact": true,
            "nothing": null,
        });
        assert_eq!(added(&pieces), Some(expected));
    }

    #[test]
    fn pieces_without_a_place_are_refused() {
        let deep = format!("${}", ".a".repeat(DEEPEST + 1));
        for path in ["a", "$a", "$[1]", "$[-1]", "$.a[", "$.a[x]", "$['a", "$['a'", "$[", &deep] {
            assert_eq!(added(&[json!({ "jsonPath": path, "numberValue": 1 })]), None, "{path}");
        }
        let text = json!({ "jsonPath": "$.a", "stringValue": "b" });
        assert_eq!(added(&[text, json!({ "jsonPath": "$.a.b", "numberValue": 1 })]), None);
        assert_eq!(added(&[json!({ "numberValue": 1 })]), None);
    }
}
