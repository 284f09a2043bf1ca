//! Generated layers in a chain.

use std::path::Path;

use goondan::extension::{Extension, ExtensionHost};
use goondan::middleware::MiddlewareKind;
use goondan::name::{ExtensionName, ToolCallId};
use goondan::prelude::*;
use goondan::tool::ToolItem;
use goondan_core::LayerInfo;
use goondan_core::host::{AnyMiddleware, Chain, LayerTimeout};
use goondan_core::host::{CallHost, RunHost, ToolCallHost, TurnInfo};
use goondan_core::linkage::CoreRun;
use serde_json::{Map, Value, json};

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

/// A tool call whose core returns the arguments as an error.
struct Call {
    scope: TurnInfo,
    id: ToolCallId,
    args: Map<String, Value>,
    metadata: Map<String, Value>,
}

impl RunHost for Call {
    fn scope(&self) -> &TurnInfo {
        &self.scope
    }

    fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.metadata
    }

    fn refuse(&mut self, _: Error) {}
}

impl CallHost for Call {
    fn tool(&self) -> Option<&ToolItem> {
        None
    }

    fn workdir(&self) -> Result<&Path> {
        panic!("these layers use no workdir")
    }

    fn reply_with(&mut self, _: ToolReply, _: &ExtensionName) {}
}

impl ToolCallHost for Call {
    fn step_index(&self) -> u32 {
        0
    }

    fn call_id(&self) -> &ToolCallId {
        &self.id
    }

    fn tool_name(&self) -> &'static str {
        "notes__add"
    }

    fn args(&self) -> &Map<String, Value> {
        &self.args
    }

    fn args_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.args
    }

    fn run_core(&mut self) -> CoreRun<'_, ToolCallResult> {
        CoreRun::local(async { Err(Error::new("E_CORE", json!(self.args).to_string())) })
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
    let mut call = Call { scope: info(), id: "1".into(), args: Map::new(), metadata: Map::new() };
    let Err(error) = block_on(chain.run(&mut call)) else { panic!("the core fails") };
    assert_eq!(error.message(), r#"{"outer":"x","inner":["x","x"]}"#);
    assert_eq!(call.metadata["after"], "x");
    assert_eq!(tags.state(), Some(json!(1)));
}
