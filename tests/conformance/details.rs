//! The details of errors: extensions read those of models, and programs those of extensions.

use conformance_extensions::details::Detailing;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::prelude::*;
use goondan::{Agent, BoxFuture, Error, ErrorCode, Secret, Value, json};
use goondan_covers::both_linkages;

use crate::linkage::Extended;
use crate::support::one_turn;

/// A model whose provider limits the rate of requests, and repeats the key.
struct Limited;

const KEY: &str = "key-in-a-detail-4711";

impl Model for Limited {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let error = Error::new(ErrorCode::MODEL_RATE_LIMIT, "slow down")
            .with_detail("status", 429)
            .with_detail("requestId", format!("for {KEY}"))
            .with_detail("list", vec![1]);
        Box::pin(async { Err(error) })
    }
}

#[both_linkages]
async fn details_of_errors_reach_extensions_and_come_back() {
    let _key = Secret::new(KEY);
    let agent = Agent::builder("assistant").model(Limited).with::<Detailing>(json!({}));
    let error = one_turn(agent).await.unwrap_err();
    let mut details = error.details().clone();
    let seen: Value = serde_json::from_str(details.remove("seen").unwrap().as_str().unwrap()).unwrap();
    assert_eq!(seen, json!({ "status": 429, "requestId": "for ***" }), "lists are left out, secrets are masked");
    assert_eq!(Value::Object(details), json!({ "retryAfterMs": 9, "final": true }));
}
