//! Target `request`: the bodies of requests to a server.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use goondan::Agent;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan_serve::Service;
use serde_json::Value;
use tower_service::Service as _;

use crate::block_on;

/// The routes that take a body, by the first line of an input.
const ROUTES: [(&str, &str); 4] = [
    ("turn", "/v1/agents/bot/instances/fuzz/turns"),
    ("decisions", "/v1/agents/bot/instances/fuzz/decisions"),
    ("ui", "/v1/agents/bot/ui"),
    ("ag-ui", "/v1/agents/bot/ag-ui"),
];

/// Sends a body to the route that the first line of `data` names. The answer is a problem with a code and a remedy, or
/// a stream whose events are JSON, and none is the fault of the server.
pub fn request(data: &[u8]) {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let name = lines.next().unwrap_or_default();
    let Some((_, path)) = ROUTES.iter().find(|(route, _)| route.as_bytes() == name) else { return };
    let body = lines.next().unwrap_or_default().to_vec();
    block_on(async {
        let model = ScriptedModel::new([ScriptItem::say("hi").repeat()]);
        let agent = Agent::builder("bot").model(model).build().expect("an agent");
        let mut router = Service::new(agent).router();
        let sent = Request::post(*path).body(Body::from(body)).expect("a request");
        let answer = router.call(sent).await.expect("a router does not fail");
        let status = answer.status().as_u16();
        let text = to_bytes(answer.into_body(), 64 << 20).await.expect("a whole answer");
        let text = str::from_utf8(&text).expect("UTF-8");
        assert!(matches!(status, 200 | 202 | 400 | 404 | 409 | 413 | 422), "{status}: {text}");
        if status >= 400 {
            let problem: Value = serde_json::from_str(text).expect("a problem");
            assert!(problem["code"].is_string() && problem["suggestion"].is_string(), "{problem}");
            return;
        }
        for data in text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]") {
            assert!(serde_json::from_str::<Value>(data).is_ok(), "{data}");
        }
    });
}
