//! Questions of servers in the words of the protocol.
// ASK-04

use goondan::{Error, Map, Value, json};
use goondan_text::visible;

use super::clean::make_visible;
use super::protocol::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ErrorData, InputRequest, InputRequests,
    InputResponses,
};
use super::running::{Caller, Elicitation, ElicitationKind, Response, Said};
use crate::failure::{self, Failure};

/// The code of the error by which a server says that addresses have to be opened first.
const URL_NEEDED: i32 = -32042;

/// Returns a question of a server, `None` if it is of a kind that is not known.
pub(super) fn elicitation(params: ElicitRequestParams) -> Option<Elicitation> {
    let clean = |text: String| visible(&text).into_owned();
    Some(match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            Elicitation { message: clean(message), kind: ElicitationKind::Form(schema(requested_schema)?) }
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            Elicitation { message: clean(message), kind: ElicitationKind::Url(url) }
        }
        _ => return None,
    })
}

fn schema(schema: ElicitationSchema) -> Option<Value> {
    let mut schema = json::to_value(schema).ok()?;
    make_visible(&mut schema);
    Some(schema)
}

/// Returns an answer in the words of the protocol.
pub(super) fn result(response: Response) -> ElicitResult {
    match response {
        Response::Accept(content) => ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content)),
        Response::Decline => ElicitResult::new(ElicitationAction::Decline),
        Response::Cancel => ElicitResult::new(ElicitationAction::Cancel),
    }
}

/// Returns the addresses that have to be opened before a call, if an error says so.
pub(super) fn needed(error: &ErrorData) -> Option<Vec<Elicitation>> {
    if error.code.0 != URL_NEEDED {
        return None;
    }
    let listed = error.data.as_ref()?.get("elicitations")?.as_array()?;
    let read = |value: &Value| {
        let params = json::from_value::<ElicitRequestParams>(value.clone()).ok()?;
        elicitation(params).filter(|elicitation| matches!(elicitation.kind, ElicitationKind::Url(_)))
    };
    listed.iter().map(read).collect::<Option<Vec<_>>>().filter(|needed| !needed.is_empty())
}

/// Asks the person, and returns the answer.
pub(super) async fn ask(caller: &Caller, elicitation: Elicitation) -> Response {
    let (answer, answered) = tokio::sync::oneshot::channel();
    let asked = Said::Asked(super::running::Asked { elicitation, answer });
    match caller.said.try_send(asked) {
        Ok(()) => answered.await.unwrap_or(Response::Cancel),
        Err(_) => Response::Cancel,
    }
}

/// Answers the questions of a server before it goes on with a call.
///
/// # Errors
/// `E_MCP_UNSUPPORTED` when it needs something else than answers of a person.
pub(super) async fn respond(caller: &Caller, requests: InputRequests) -> Result<InputResponses, Failure> {
    let mut responses = InputResponses::new();
    for (name, request) in requests {
        let response = match request {
            InputRequest::Elicitation(request) => match elicitation(request.params) {
                Some(elicitation) => json::to_value(result(ask(caller, elicitation).await)),
                None => json::to_value(result(Response::Decline)),
            },
            InputRequest::ListRoots(_) => Ok(json!({ "roots": [] })),
            _ => return Err(unsupported("a request to ask the model of the agent")),
        };
        responses.insert(name, response.map_err(unsupported)?);
    }
    Ok(responses)
}

fn unsupported(what: impl std::fmt::Display) -> Failure {
    let error = Error::new(failure::UNSUPPORTED, format!("the MCP server sent what is not supported: {what}"));
    Failure::Answered(error.suggest("do without it"))
}

/// The words by which a form asks for something that servers must not ask for by a form.
const SECRETS: [&str; 9] =
    ["password", "passphrase", "passwort", "secret", "api key", "apikey", "access token", "private key", "credit card"];

/// Returns the field of a form that asks for a secret, which the protocol forbids: it would pass the server in plain
/// text.
pub(crate) fn secret_field(schema: &Value) -> Option<String> {
    let properties: &Map<String, Value> = schema.get("properties")?.as_object()?;
    let is_secret = |text: &str| {
        let text = text.to_lowercase().replace(['_', '-'], " ");
        SECRETS.iter().any(|word| text.contains(word))
    };
    let asks = |(name, property): (&String, &Value)| {
        let text = |member: &str| property.get(member).and_then(Value::as_str).unwrap_or_default();
        let kind = property.get("type").and_then(Value::as_str).unwrap_or("string");
        kind == "string" && (is_secret(name) || is_secret(text("title")) || text("format") == "password")
    };
    properties.iter().find(|field| asks(*field)).map(|(name, _)| name.clone())
}

/// Adds the defaults of a form to the filled-in values.
pub(crate) fn with_defaults(schema: &Value, mut content: Map<String, Value>) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default").filter(|_| !content.contains_key(name)) {
            content.insert(name.clone(), default.clone());
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_asks_for_a_secret_is_found() {
        let form =
            |name: &str, property: Value| json!({ "properties": { "city": { "type": "string" }, name: property } });
        let text = || json!({ "type": "string" });
        for (name, property) in [
            ("password", text()),
            ("API_KEY", text()),
            ("code", json!({ "type": "string", "title": "Your pass-phrase or Password" })),
            ("x", json!({ "type": "string", "format": "password" })),
        ] {
            assert_eq!(secret_field(&form(name, property)).as_deref(), Some(name));
        }
        for (name, property) in [("age", json!({ "type": "integer" })), ("resetPassword", json!({ "type": "boolean" }))]
        {
            assert_eq!(secret_field(&form(name, property)), None);
        }
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let schema = json!({ "properties": { "a": { "default": 7 }, "b": { "default": "x" }, "c": {} } });
        let filled = json!({ "b": "y" }).as_object().cloned().unwrap();
        assert_eq!(Value::Object(with_defaults(&schema, filled)), json!({ "a": 7, "b": "y" }));
    }

    #[test]
    fn addresses_that_are_needed_are_read() {
        let error = |data: Value| {
            ErrorData::new(crate::server::protocol::model::ErrorCode(URL_NEEDED), "open it first", Some(data))
        };
        let url = "https://example.org/sign-in";
        let one = json!({ "mode": "url", "message": "Sign in.", "url": url, "elicitationId": "1" });
        let needed = needed(&error(json!({ "elicitations": [one] }))).unwrap();
        assert_eq!(
            needed,
            [Elicitation { message: "Sign in.".to_owned(), kind: ElicitationKind::Url(url.to_owned()) }]
        );
        for data in [json!({}), json!({ "elicitations": [] }), json!({ "elicitations": [{ "mode": "url" }] })] {
            assert_eq!(super::needed(&error(data)), None);
        }
    }
}
