//! Extensions in unusual places, under raw names, with code in their docs, and with functions under `#[cfg]`.

use goondan::extension::Extension;
use goondan::middleware::MiddlewareKind;
use goondan::prelude::*;
use serde_json::{Value, json};

use crate::support::{middlewares, register};

#[test]
fn extension_in_a_module_inside_of_a_function() {
    mod local {
        use goondan::prelude::*;

        pub(super) struct Local;

        #[goondan::extension(name = "local")]
        impl Local {
            #[init]
            fn new() -> Self {
                Self
            }

            #[middleware(step)]
            async fn pass(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
                next.run(ctx).await
            }
        }

        #[goondan::extension(name = "local-module")]
        pub(super) mod module {
            #[tool]
            async fn greet() -> goondan::Result<String> {
                Ok("hello".to_owned())
            }
        }
    }

    assert_eq!(middlewares::<local::Local>(json!({})), [(MiddlewareKind::Step, "pass".to_owned(), 0)]);
    let module = register::<local::module::Extension>(json!({})).unwrap();
    assert_eq!(module.call("local-module__greet", json!({})).unwrap(), "hello");
}

#[test]
fn extension_inside_of_a_function() {
    struct Inside;

    #[goondan::extension(name = "inside")]
    impl Inside {
        #[init]
        fn new() -> Self {
            Self
        }

        #[tool]
        async fn greet(&self) -> Result<String> {
            Ok("hello".to_owned())
        }
    }

    assert_eq!(register::<Inside>(json!({})).unwrap().call("inside__greet", json!({})).unwrap(), "hello");
}

#[goondan::extension(name = "raw")]
mod r#async {
    #[derive(goondan::prelude::Deserialize, goondan::prelude::JsonSchema)]
    struct Text {
        text: String,
    }

    #[tool]
    async fn r#type(r#in: Text) -> goondan::Result<String> {
        Ok(r#in.text)
    }
}

#[test]
fn raw_names() {
    let raw = register::<r#async::Extension>(json!({})).unwrap();
    assert_eq!(raw.call("raw__type", json!({ "text": "x" })).unwrap(), "x");
}

struct Documented;

/// Shows code:
///
/// ```
/// let text = "a \"quoted\" text";
///     assert!(!text.is_empty()); // indented
/// ```
#[goondan::extension(name = "documented")]
impl Documented {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Answers like this:
    /// ```json
    /// { "text": "\n" }
    /// ```
    #[tool]
    async fn show(&self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn doc_comments_with_code_stay_as_they_are() {
    assert_eq!(
        Documented::DESCRIPTOR.description,
        "Shows code:\n\n```\nlet text = \"a \\\"quoted\\\" text\";\n    assert!(!text.is_empty()); // indented\n```"
    );
    assert_eq!(Documented::DESCRIPTOR.tools[0].description, "Answers like this:\n```json\n{ \"text\": \"\\n\" }\n```");
}

pub(crate) struct Conditional;

#[goondan::extension(name = "conditional")]
impl Conditional {
    #[init]
    fn new() -> Self {
        Self
    }

    #[cfg(not(test))]
    #[middleware(turn)]
    async fn turn(&self, ctx: NoSuchContext, next: Next<'_, Turn>) -> Result<TurnResult> {
        next.run(ctx).await
    }

    #[cfg(test)]
    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await
    }

    /// For others.
    #[cfg(not(test))]
    #[tool(effect = idempotent)]
    async fn where_am_i(&self, input: NoSuchInput) -> Result<String> {}

    /// For us.
    #[cfg(test)]
    #[tool(effect = read)]
    async fn where_am_i(&self) -> Result<String> {
        Ok("in a test".to_owned())
    }

    #[cfg(not(test))]
    #[tool(blocking)]
    fn elsewhere(&self) -> Result<NoSuchOutput> {}

    #[cfg(not(test))]
    #[on("a.b")]
    async fn gone(&self) -> Result<()> {}

    #[cfg(test)]
    #[on("c.d")]
    async fn there(&self) -> Result<()> {
        Ok(())
    }

    #[cfg(not(test))]
    #[cleanup]
    async fn close(&self) {}
}

#[test]
fn functions_are_registered_where_their_cfg_holds() {
    let conditional = register::<Conditional>(Value::Null).unwrap();
    assert_eq!(conditional.names(), ["middleware step", "tool conditional__where_am_i", "on c.d"]);
    assert_eq!(conditional.call("conditional__where_am_i", json!({})).unwrap(), "in a test");
    let descriptor = Conditional::DESCRIPTOR;
    assert_eq!(descriptor.middlewares.iter().map(|layer| layer.function).collect::<Vec<_>>(), ["step"]);
    assert_eq!(descriptor.tools.iter().map(|tool| tool.description).collect::<Vec<_>>(), ["For us."]);
    assert_eq!(descriptor.subscriptions, ["c.d"]);
}
