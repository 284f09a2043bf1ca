//! The description of a route, and of all of them: `/openapi.json`.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::request::Wanted;
use crate::schemas;

/// The description of a route: the body that it takes, and its answers.
pub(crate) struct Operation {
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<fn(&mut SchemaGenerator) -> Schema>,
    answers: Vec<(u16, Answer)>,
    /// The statuses of problems.
    refuses: &'static [u16],
    /// Set if it asks for no token.
    is_open: bool,
}

enum Answer {
    Json(fn(&mut SchemaGenerator) -> Schema),
    Events,
    Text,
    Empty,
}

impl Operation {
    pub(crate) fn new(summary: &'static str) -> Self {
        Self { summary, parameters: Vec::new(), body: None, answers: Vec::new(), refuses: &[], is_open: false }
    }

    /// Takes a body of JSON.
    pub(crate) fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(SchemaGenerator::subschema_for::<T>), ..self }
    }

    pub(crate) fn query(self, name: &str, description: &str) -> Self {
        self.parameter("query", name, description)
    }

    pub(crate) fn header(self, name: &str, description: &str) -> Self {
        self.parameter("header", name, description)
    }

    fn parameter(mut self, place: &str, name: &str, description: &str) -> Self {
        let schema = json!({ "type": "string" });
        self.parameters.push(json!({ "in": place, "name": name, "description": description, "schema": schema }));
        self
    }

    pub(crate) fn answers<T: JsonSchema>(self, status: u16) -> Self {
        self.with(status, Answer::Json(SchemaGenerator::subschema_for::<T>))
    }

    /// Answers with server-sent events.
    pub(crate) fn streams(self) -> Self {
        self.with(200, Answer::Events)
    }

    pub(crate) fn says(self) -> Self {
        self.with(200, Answer::Text)
    }

    pub(crate) fn says_nothing(self, status: u16) -> Self {
        self.with(status, Answer::Empty)
    }

    fn with(mut self, status: u16, answer: Answer) -> Self {
        self.answers.push((status, answer));
        self
    }

    /// Answers with problems that have these statuses.
    pub(crate) fn refuses(self, refuses: &'static [u16]) -> Self {
        Self { refuses, ..self }
    }

    /// Asks for no token.
    pub(crate) fn without_token(self) -> Self {
        Self { is_open: true, ..self }
    }

    /// Returns what a request to the route needs.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted { token: !self.is_open, body: self.body.is_some() }
    }

    fn describe(&self, path: &str, generator: &mut SchemaGenerator) -> Value {
        let names: Vec<_> = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        // A part of the path is no UTF-8.
        let unreadable: &[u16] = if names.is_empty() { &[] } else { &[400] };
        let in_path =
            |name: &str| json!({ "in": "path", "name": name, "required": true, "schema": { "type": "string" } });
        let parameters: Vec<_> = names.into_iter().map(in_path).chain(self.parameters.iter().cloned()).collect();
        let mut responses: Map<String, Value> = Map::new();
        for (status, answer) in &self.answers {
            let (kind, schema) = match answer {
                Answer::Json(schema) => ("application/json", schema(generator).to_value()),
                Answer::Events => ("text/event-stream", json!({ "type": "string" })),
                Answer::Text => ("text/plain; charset=utf-8", json!({ "type": "string" })),
                Answer::Empty => {
                    responses.insert(status.to_string(), json!({ "description": "Nothing." }));
                    continue;
                }
            };
            let response = responses.entry(status.to_string());
            let response = response.or_insert_with(|| json!({ "description": self.summary, "content": {} }));
            response["content"][kind] = json!({ "schema": schema });
        }
        let closed: &[u16] = if self.is_open { &[] } else { &[401, 403] };
        for status in self.refuses.iter().chain(closed).chain(unreadable) {
            let problem = json!({ "$ref": "#/components/responses/Problem" });
            responses.insert(status.to_string(), problem);
        }
        let mut operation = json!({ "summary": self.summary, "parameters": parameters, "responses": responses });
        if let Some(body) = self.body {
            let content = json!({ "application/json": { "schema": body(generator) } });
            operation["requestBody"] = json!({ "required": true, "content": content });
        }
        if self.is_open {
            operation["security"] = json!([]);
        }
        operation
    }
}

/// Describes all routes: their methods, paths and operations.
pub(crate) fn document<'o>(
    routes: impl Iterator<Item = (&'static str, &'o str, &'o Operation)>,
    has_tokens: bool,
) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = json!({});
    for (method, path, operation) in routes {
        paths[path][method] = operation.describe(path, &mut generator);
    }
    let schema = generator.subschema_for::<schemas::Problem>();
    let problem = json!({
        "description": "The request was refused.",
        "content": { "application/problem+json": { "schema": schema } },
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "goondan serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Turns of agents. https://docs.rs/goondan-serve describes what streams carry.",
        },
        "paths": paths,
        "security": if has_tokens { json!([{ "token": [] }]) } else { json!([]) },
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": { "Problem": problem },
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}
