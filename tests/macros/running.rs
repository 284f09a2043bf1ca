//! Generated layers in a chain.

use goondan::extension::{Extension, ExtensionHost};
use goondan::middleware::MiddlewareKind;
use goondan::name::ExtensionName;
use goondan::prelude::*;
use goondan_core::LayerInfo;
use goondan_core::host::{AnyMiddleware, Chain, LayerTimeout};
use goondan_runtime::idle::{CallFields, IdleRun};
use serde_json::json;

use crate::support::{block_on, info, register};

#[derive(Deserialize, JsonSchema)]
struct Tags {
    tag: String,
}

#[goondan::extension(name = "tags")]
impl Tags {
    #[init]
    fn new(config: Self) -> Self {
        config
    }

    #[middleware(toolCall)]
    async fn outer(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        ctx.args_mut().insert("outer".to_owned(), self.tag.clone().into());
        let result = next.run(ctx).await;
        ctx.metadata_mut().insert("after".to_owned(), self.tag.clone().into());
        result
    }

    #[middleware(toolCall)]
    async fn inner(
        &self,
        next: Next<'_, ToolCall>,
        api: &ExtensionApi,
        ctx: &mut ToolCallContext<'_>,
    ) -> Result<ToolCallResult> {
        api.state().update(|calls: &mut u64| *calls += 1)?;
        let outer = ctx.args()["outer"].clone();
        ctx.args_mut().insert("inner".to_owned(), json!([outer, self.tag]));
        next.run(ctx).await
    }
}

#[test]
fn layers_share_the_extension_and_wrap_the_core() {
    let tags = register::<Tags>(json!({ "tag": "x" })).unwrap();
    let layers = tags.middlewares().into_iter().map(|(layer, options)| {
        let AnyMiddleware::ToolCall(layer) = layer else { panic!("not a tool-call layer") };
        let extension = ExtensionName::new(Tags::DESCRIPTOR.name).unwrap();
        let kind = MiddlewareKind::ToolCall;
        (LayerInfo::new(extension, kind, options), layer)
    });
    let chain = Chain::new(layers, LayerTimeout::NONE);
    // The core returns the arguments as an error.
    let core =
        |call: &CallFields| -> Result<ToolCallResult> { Err(Error::new("E_CORE", json!(call.args).to_string())) };
    let mut call = IdleRun::new(info(), core);
    let Err(error) = block_on(chain.run(&mut call)) else { panic!("the core fails") };
    assert_eq!(error.message(), r#"{"outer":"x","inner":["x","x"]}"#);
    assert_eq!(call.metadata["after"], "x");
    assert_eq!(tags.state(), Some(json!(1)));
}
