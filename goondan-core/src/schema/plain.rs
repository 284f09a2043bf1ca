//! Owns the schemas that most configs and tools have: a few keywords whose meaning is beyond doubt, checked by hand.
//!
//! Compiling a schema in full compiles the schema of schemas before it, which takes longer than all the rest of a short
//! run. A plain schema says yes by itself, or says that it does not know; only then is the schema compiled in full.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Number, Value};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// How deeply references may lead before a plain schema does not know.
const MAX_DEPTH: usize = 64;

/// What all numbers up to here have in common: as floating point they are exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A schema of nothing but the keywords below.
pub(super) struct Plain {
    root: Node,
    definitions: BTreeMap<String, Node>,
}

/// A schema in it. A value fits when it passes all that is there.
#[derive(Default)]
struct Node {
    types: Option<Vec<Type>>,
    one_of_values: Option<Vec<Value>>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    properties: BTreeMap<String, Node>,
    required: Vec<String>,
    others: Others,
    items: Option<Box<Node>>,
    any_of: Option<Vec<Node>>,
    /// The name of a definition.
    reference: Option<String>,
}

/// What members may be that are not among the properties.
#[derive(Default)]
enum Others {
    #[default]
    Anything,
    Nothing,
    Fitting(Box<Node>),
}

#[derive(Clone, Copy, PartialEq)]
enum Type {
    Array,
    Boolean,
    Integer,
    Null,
    Number,
    Object,
    String,
}

impl Plain {
    /// `None` when `schema` has other keywords, or these with other values: it may be a schema, and it may be none.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let mut members = schema.as_object()?.clone();
        if members.remove("$schema").is_some_and(|draft| draft != DRAFT) {
            return None;
        }
        let definitions = match members.remove("$defs") {
            Some(definitions) => nodes(&definitions)?,
            None => BTreeMap::new(),
        };
        let plain = Self { root: node(&members)?, definitions };
        let mut references = plain.definitions.values().chain([&plain.root]).flat_map(Node::references);
        let known = references.all(|name| plain.definitions.contains_key(name));
        drop(references);
        known.then_some(plain)
    }

    /// Whether `value` fits for certain.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        self.fits(&self.root, value, 0)
    }

    fn fits(&self, node: &Node, value: &Value, depth: usize) -> bool {
        depth < MAX_DEPTH
            && node.types.as_ref().is_none_or(|types| types.iter().any(|it| it.is_of(value)))
            && node.one_of_values.as_ref().is_none_or(|values| values.contains(value))
            && node.is_in_range(value)
            && value.as_object().is_none_or(|members| self.members_fit(node, members, depth))
            && match (&node.items, value) {
                (Some(item), Value::Array(items)) => items.iter().all(|value| self.fits(item, value, depth + 1)),
                _ => true,
            }
            && node.any_of.as_ref().is_none_or(|any| any.iter().any(|node| self.fits(node, value, depth + 1)))
            && match &node.reference {
                Some(name) => self.definitions.get(name).is_some_and(|node| self.fits(node, value, depth + 1)),
                None => true,
            }
    }

    fn members_fit(&self, node: &Node, members: &Map<String, Value>, depth: usize) -> bool {
        node.required.iter().all(|name| members.contains_key(name))
            && members.iter().all(|(name, value)| match (node.properties.get(name), &node.others) {
                (Some(property), _) => self.fits(property, value, depth + 1),
                (None, Others::Anything) => true,
                (None, Others::Nothing) => false,
                (None, Others::Fitting(other)) => self.fits(other, value, depth + 1),
            })
    }
}

impl Node {
    fn is_in_range(&self, value: &Value) -> bool {
        let Value::Number(number) = value else { return true };
        if self.at_least.is_none() && self.at_most.is_none() {
            return true;
        }
        exact(number).is_some_and(|number| {
            self.at_least.is_none_or(|least| number >= least) && self.at_most.is_none_or(|most| number <= most)
        })
    }

    fn references(&self) -> Vec<&str> {
        let others = if let Others::Fitting(node) = &self.others { Some(&**node) } else { None };
        let within = self.properties.values().chain(others).chain(self.items.as_deref());
        let within = within.chain(self.any_of.iter().flatten());
        self.reference.as_deref().into_iter().chain(within.flat_map(Self::references)).collect()
    }
}

impl Type {
    fn named(name: &Value) -> Option<Self> {
        match name.as_str()? {
            "array" => Some(Self::Array),
            "boolean" => Some(Self::Boolean),
            "integer" => Some(Self::Integer),
            "null" => Some(Self::Null),
            "number" => Some(Self::Number),
            "object" => Some(Self::Object),
            "string" => Some(Self::String),
            _ => None,
        }
    }

    fn is_of(self, value: &Value) -> bool {
        match value {
            Value::Null => self == Self::Null,
            Value::Bool(_) => self == Self::Boolean,
            // `1.0` is an integer as well; whoever writes it that way asks the whole schema.
            Value::Number(number) => self == Self::Number || self == Self::Integer && !number.is_f64(),
            Value::String(_) => self == Self::String,
            Value::Array(_) => self == Self::Array,
            Value::Object(_) => self == Self::Object,
        }
    }
}

fn node(members: &Map<String, Value>) -> Option<Node> {
    let (mut node, mut any_of) = (Node::default(), Vec::new());
    for (keyword, value) in members {
        match keyword.as_str() {
            // A format is a remark in this draft.
            "title" | "description" | "format" | "$comment" if value.is_string() => {}
            "default" => {}
            "type" => node.types = Some(types(value)?),
            "enum" => node.one_of_values = Some(value.as_array()?.clone()),
            "const" => node.one_of_values = Some(vec![value.clone()]),
            "minimum" => node.at_least = Some(exact(value.as_number()?)?),
            "maximum" => node.at_most = Some(exact(value.as_number()?)?),
            "properties" => node.properties = nodes(value)?,
            "required" => node.required = names(value)?,
            "additionalProperties" => {
                node.others = match value {
                    Value::Bool(true) => Others::Anything,
                    Value::Bool(false) => Others::Nothing,
                    other => Others::Fitting(Box::new(self::node(other.as_object()?)?)),
                }
            }
            "items" => node.items = Some(Box::new(self::node(value.as_object()?)?)),
            "anyOf" => any_of.push(several(value)?),
            "oneOf" => any_of.push(several(value).filter(|several| are_apart(several))?),
            "$ref" => node.reference = Some(definition(value)?),
            _ => return None,
        }
    }
    // Each is a condition of its own; nobody writes two of a kind.
    let both = |one, other| members.contains_key(one) && members.contains_key(other);
    if both("enum", "const") || both("anyOf", "oneOf") {
        return None;
    }
    node.any_of = any_of.pop();
    Some(node)
}

fn several(schemas: &Value) -> Option<Vec<Node>> {
    let schemas = schemas.as_array().filter(|schemas| !schemas.is_empty())?;
    schemas.iter().map(|schema| node(schema.as_object()?)).collect()
}

/// Whether no value can fit two of them, because each names the texts that fit it, as an `enum` of Rust with comments does.
fn are_apart(nodes: &[Node]) -> bool {
    let mut named = BTreeSet::new();
    nodes.iter().all(|node| {
        let values = node.one_of_values.as_ref();
        values.is_some_and(|values| values.iter().all(|value| value.as_str().is_some_and(|text| named.insert(text))))
    })
}

fn nodes(schemas: &Value) -> Option<BTreeMap<String, Node>> {
    let schemas = schemas.as_object()?.iter();
    schemas.map(|(name, schema)| Some((name.clone(), node(schema.as_object()?)?))).collect()
}

fn types(value: &Value) -> Option<Vec<Type>> {
    let Value::Array(names) = value else { return Some(vec![Type::named(value)?]) };
    let types: Vec<_> = names.iter().map(Type::named).collect::<Option<_>>()?;
    let twice = types.iter().enumerate().any(|(at, one)| types[..at].contains(one));
    (!types.is_empty() && !twice).then_some(types)
}

fn names(value: &Value) -> Option<Vec<String>> {
    let names: Vec<_> = value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let twice = names.iter().enumerate().any(|(at, one)| names[..at].contains(one));
    (!twice).then_some(names)
}

fn definition(reference: &Value) -> Option<String> {
    let name = reference.as_str()?.strip_prefix("#/$defs/")?;
    // Others may be escaped.
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-').then(|| name.to_owned())
}

/// The number, if floating point has it.
fn exact(number: &Number) -> Option<f64> {
    number.as_f64().filter(|number| number.abs() < EXACT)
}
