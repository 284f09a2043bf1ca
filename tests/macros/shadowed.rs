//! Hygiene: every name that an expansion could use by mistake is shadowed.

use serde_json::json;

use crate::support::register;

mod scope {
    #![no_implicit_prelude]

    mod goondan {}
    mod std {}
    mod core {}
    #[allow(non_camel_case_types, dead_code)]
    struct str;
    #[allow(non_camel_case_types, dead_code)]
    struct u8;
    #[allow(dead_code)]
    struct Result;
    #[allow(dead_code)]
    struct Box;
    #[allow(unused_macros)]
    macro_rules! concat {
        () => {};
    }
    #[allow(unused_macros)]
    macro_rules! env {
        () => {};
    }

    pub(super) struct Shadowed;

    #[::goondan::extension(name = "shadowed")]
    impl Shadowed {
        #[init]
        fn new(_api: ::goondan::extension::ExtensionApi) -> Self {
            Self
        }

        #[middleware(turn)]
        async fn turn(
            &self,
            ctx: &mut ::goondan::middleware::TurnContext<'_>,
            next: ::goondan::middleware::Next<'_, ::goondan::middleware::Turn>,
        ) -> ::goondan::Result<::goondan::middleware::TurnResult> {
            next.run(ctx).await
        }

        #[tool(timeout = "5s")]
        async fn tool(&self, ctx: &::goondan::tool::ToolContext<'_>, input: ::goondan::Value) -> ::goondan::Result<()> {
            let _ = (ctx, input);
            ::goondan::__private::Ok(())
        }

        #[tool(blocking)]
        fn blocking(&self) -> ::goondan::Result<()> {
            ::goondan::__private::Ok(())
        }

        #[on("turn.*")]
        async fn on(
            &self,
            _event: &::goondan::event::Event,
            _api: &::goondan::extension::ExtensionApi,
        ) -> ::goondan::Result<()> {
            ::goondan::__private::Ok(())
        }

        #[cleanup]
        async fn cleanup(&self) {}
    }

    #[::goondan::extension(name = "shadowed-module")]
    pub(super) mod module {
        #![no_implicit_prelude]

        #[allow(dead_code)]
        struct Option;

        #[tool(effect = read, timeout = "5s")]
        async fn tool() -> ::goondan::Result<()> {
            ::goondan::__private::Ok(())
        }

        #[cleanup]
        async fn cleanup() {}
    }
}

#[test]
fn expansions_use_nothing_from_the_users_scope() {
    assert_eq!(register::<scope::Shadowed>(json!({})).unwrap().names().len(), 5);
    assert_eq!(register::<scope::module::Extension>(json!({})).unwrap().names().len(), 2);
}
