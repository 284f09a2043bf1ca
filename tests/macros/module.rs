//! Extensions that are modules.

use goondan::extension::{Extension, ExtensionHost, MiddlewareDescriptor};
use goondan::middleware::MiddlewareKind;
use serde_json::json;

use crate::support::register;

#[goondan::extension(name = "hello", requires = ["workspace"])]
mod hello {
    //! Says hello.
    //!
    //! And goodbye.
    use std::sync::atomic::{AtomicU64, Ordering};

    use goondan::prelude::*;

    /// Has no attribute, so it is not changed.
    pub(super) static STARTS: AtomicU64 = AtomicU64::new(0);

    #[derive(Deserialize, JsonSchema)]
    struct Config {
        greeting: String,
    }

    #[derive(Deserialize, JsonSchema)]
    pub(super) struct Input {
        name: String,
    }

    fn polite(text: &str) -> String {
        format!("{text}, please")
    }

    #[init]
    async fn start(config: Config, api: ExtensionApi) -> Result<()> {
        STARTS.fetch_add(1, Ordering::Relaxed);
        api.state().set(&polite(&config.greeting))
    }

    #[middleware(step, priority = 3)]
    async fn pass(next: Next<'_, Step>, api: &ExtensionApi, ctx: &mut StepContext<'_>) -> Result<StepResult> {
        api.events().emit("hello.passed", ());
        next.run(ctx).await
    }

    /// Returns a greeting.
    #[tool(effect = read)]
    pub(super) async fn greet(input: Input, api: &ExtensionApi, ctx: &ToolContext<'_>) -> Result<String> {
        let greeting: String = api.state().get()?.unwrap_or_default();
        Ok(format!("{greeting} {} {}", input.name, ctx.call_id()))
    }

    #[tool(blocking)]
    fn slots(input: Input) -> Result<usize> {
        Ok(input.name.len())
    }

    #[on("turn.completed")]
    async fn bound(event: &Event) -> Result<()> {
        Err(Error::msg(event.name().to_owned()))
    }

    #[cleanup]
    async fn api(api: &ExtensionApi) {
        api.events().emit("hello.closed", ());
    }
}

#[test]
fn module_is_described_like_a_type() {
    let descriptor = hello::Extension::DESCRIPTOR;
    assert_eq!((descriptor.name, descriptor.description), ("hello", "Says hello.\n\nAnd goodbye."));
    assert_eq!(descriptor.middlewares, [MiddlewareDescriptor::new(MiddlewareKind::Step, "pass").priority(3)]);
    assert_eq!(descriptor.tools.iter().map(|tool| tool.name).collect::<Vec<_>>(), ["hello__greet", "hello__slots"]);
    assert_eq!((descriptor.subscriptions, descriptor.requires), (&["turn.completed"][..], &["workspace"][..]));
    assert_eq!((descriptor.config_schema)()["required"], json!(["greeting"]));
    assert!(goondan::extension::linked().iter().any(|linked| std::ptr::eq(*linked, descriptor)));
}

#[test]
fn functions_of_a_module_are_called_without_an_instance() {
    let hello = register::<hello::Extension>(json!({ "greeting": "hi" })).unwrap();
    assert!(hello::STARTS.load(std::sync::atomic::Ordering::Relaxed) > 0);
    assert_eq!(
        hello.names(),
        ["middleware pass", "tool hello__greet", "tool hello__slots", "on turn.completed", "cleanup"]
    );
    assert_eq!(hello.call("hello__greet", json!({ "name": "ann" })).unwrap(), "hi, please ann call-1");
    assert_eq!(hello.call("hello__slots", json!({ "name": "ann" })).unwrap(), 3);
    let outcomes = hello.deliver(&goondan::event::Event::new("turn.completed", ()).unwrap());
    assert_eq!(outcomes[0].as_ref().unwrap_err().message(), "turn.completed");
    assert!(hello.clean_up()[0].is_ok());
    assert_eq!(hello.emitted(), ["hello.closed"]);
    assert_eq!(hello.state(), Some(json!("hi, please")));
}

#[test]
fn wrong_config_of_a_module_is_refused() {
    let Err(error) = register::<hello::Extension>(json!({})) else { panic!("`#[init]` succeeded") };
    assert_eq!(error.code(), &goondan::ErrorCode::EXT_CONFIG);
}

#[goondan::extension(name = "nothing-at-all")]
mod nothing {}

#[goondan::extension(name = "starts")]
mod starts {
    #[init]
    fn start() {}
}

#[test]
fn module_may_have_no_functions() {
    assert!(register::<nothing::Extension>(json!({})).unwrap().names().is_empty());
    assert!(register::<starts::Extension>(json!({})).unwrap().names().is_empty());
    let schema = (nothing::Extension::DESCRIPTOR.config_schema)();
    assert_eq!(schema, json!({ "type": "object", "additionalProperties": false }));
}
