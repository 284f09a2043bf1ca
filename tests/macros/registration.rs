//! Registrations of middlewares: kind, name, priority and order.

use goondan::extension::{Extension, MiddlewareDescriptor};
use goondan::middleware::MiddlewareKind;
use goondan::prelude::*;
use serde_json::json;

use crate::support::{middlewares, register};

struct Layers;

/// Has layers of every kind.
///
/// And a second paragraph.
#[goondan::extension(name = "layers")]
impl Layers {
    /// Has no attribute, so it is not changed.
    const PRIORITY: i32 = 7;

    #[init]
    fn new() -> Self {
        Self::helper(Self)
    }

    fn helper<T>(value: T) -> T {
        value
    }

    #[middleware(toolCall, priority = -5)]
    async fn guard(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        next.run(ctx).await
    }

    #[middleware(turn)]
    async fn r#loop(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        next.run(ctx).await
    }

    #[middleware(priority = 2147483647, step)]
    async fn count(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await
    }

    /// Has the same name as a generated function.
    #[middleware(turn, priority = 1)]
    async fn register(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        next.run(ctx).await
    }
}

#[test]
fn layers_are_registered_in_source_order() {
    assert_eq!(
        middlewares::<Layers>(json!({})),
        [
            (MiddlewareKind::ToolCall, "guard".to_owned(), -5),
            (MiddlewareKind::Turn, "loop".to_owned(), 0),
            (MiddlewareKind::Step, "count".to_owned(), i32::MAX),
            (MiddlewareKind::Turn, "register".to_owned(), 1),
        ]
    );
    assert_eq!(Layers::PRIORITY, 7);
}

#[test]
fn descriptor_describes_the_extension() {
    let descriptor = Layers::DESCRIPTOR;
    assert_eq!(descriptor.name, "layers");
    assert_eq!(descriptor.description, "Has layers of every kind.\n\nAnd a second paragraph.");
    assert_eq!((descriptor.package, descriptor.version), (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")));
    assert_eq!(descriptor.api_version, goondan::extension::API_VERSION);
    assert_eq!(
        descriptor.middlewares,
        [
            MiddlewareDescriptor::new(MiddlewareKind::ToolCall, "guard").priority(-5),
            MiddlewareDescriptor::new(MiddlewareKind::Turn, "loop"),
            MiddlewareDescriptor::new(MiddlewareKind::Step, "count").priority(i32::MAX),
            MiddlewareDescriptor::new(MiddlewareKind::Turn, "register").priority(1),
        ]
    );
}

#[test]
fn linked_extensions_are_listed() {
    let linked = goondan::extension::linked();
    assert!(linked.iter().any(|descriptor| std::ptr::eq(*descriptor, Layers::DESCRIPTOR)), "{linked:?}");
    assert!(linked.iter().any(|descriptor| descriptor.name == "refuses"), "{linked:?}");
}

struct Refuses;

#[goondan::extension(name = "refuses")]
impl Refuses {
    #[init]
    async fn new(api: ExtensionApi) -> Result<Self, std::num::ParseIntError> {
        let _: u8 = format!("{api:?}").parse()?;
        Ok(Self)
    }
}

#[test]
fn failing_init_registers_nothing() {
    let Err(error) = register::<Refuses>(json!({})) else { panic!("`#[init]` succeeded") };
    assert_eq!(error.message(), "invalid digit found in string");
}

struct ByHand;

#[goondan::extension(name = "by-hand")]
impl ByHand {
    #[init]
    fn new(api: ExtensionApi) -> Result<Self> {
        struct Layer;
        impl goondan::middleware::Middleware<Step> for Layer {
            fn handle<'a>(
                &'a self,
                ctx: &'a mut StepContext<'_>,
                next: Next<'a, Step>,
            ) -> goondan::BoxFuture<'a, Result<StepResult>> {
                Box::pin(async move { next.run(ctx).await })
            }
        }
        api.pipeline().register(Step, Layer, goondan::middleware::MiddlewareOptions::priority(3).named("layer"))?;
        Ok(Self)
    }
}

#[test]
fn init_can_register_without_attributes() {
    assert_eq!(middlewares::<ByHand>(json!(null)), [(MiddlewareKind::Step, "layer".to_owned(), 3)]);
    assert!(ByHand::DESCRIPTOR.middlewares.is_empty());
}
