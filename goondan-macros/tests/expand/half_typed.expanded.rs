impl Window {
    #[allow(clippy::needless_pass_by_value)]
    fn new() -> Self {
        Self
    }
    #[allow(clippy::unused_async, clippy::unused_self)]
    async fn trim(
        &self,
        ctx: &mut StepContext<'_>,
        next: Next<'_, Step>,
    ) -> Result<StepResult> {
        as_it_was_typed! {
            let half_typed = ctx.next.run(ctx). await
        }
    }
    #[allow(
        clippy::needless_pass_by_value,
        clippy::unnecessary_wraps,
        clippy::unused_async,
        clippy::unused_self
    )]
    async fn status(&self) -> Result<usize> {
        as_it_was_typed! {
            let half_typed = match self.
        }
    }
}
const _: () = {
    use ::goondan::__private as __goondan;
    static __DESCRIPTOR: __goondan::ExtensionDescriptor = __goondan::ExtensionDescriptor::new(
            "window",
            &__config_schema,
            &__register,
        )
        .description("")
        .package(__goondan::env!("CARGO_PKG_NAME"), __goondan::env!("CARGO_PKG_VERSION"))
        .middlewares(
            &[
                __goondan::MiddlewareDescriptor::new(
                        __goondan::MiddlewareKind::Step,
                        "trim",
                    )
                    .priority(0i32)
                    .before(&[])
                    .after(&[]),
            ],
        )
        .tools(&[__tool_status::DESCRIPTOR])
        .subscriptions(&[])
        .requires(&[])
        .guard(false);
    #[automatically_derived]
    impl __goondan::Extension for Window {
        const DESCRIPTOR: &'static __goondan::ExtensionDescriptor = &__DESCRIPTOR;
    }
    __goondan::inventory::submit! {
        __goondan::LinkedExtension::new(& __DESCRIPTOR)
    }
    #[allow(dead_code)]
    struct __Bound {
        this: __goondan::Arc<Window>,
        api: __goondan::ExtensionApi,
    }
    #[automatically_derived]
    impl __goondan::Clone for __Bound {
        fn clone(&self) -> Self {
            Self {
                this: __goondan::Clone::clone(&self.this),
                api: __goondan::Clone::clone(&self.api),
            }
        }
    }
    #[allow(unused_mut, unused_variables)]
    fn __register(
        api: __goondan::ExtensionApi,
        config: __goondan::Value,
    ) -> __goondan::BoxFuture<'static, __goondan::Result<()>> {
        __goondan::Box::pin(async move {
            let slots = __goondan::params::InitSlots::all();
            let mut inputs = __goondan::params::InitInputs::new(
                __goondan::Clone::clone(&api),
                config,
            );
            let this = __goondan::params::IntoExtension::<
                Window,
            >::into_result(<Window>::new())?;
            let bound = __Bound {
                this: __goondan::Arc::new(this),
                api: __goondan::Clone::clone(&api),
            };
            api.pipeline()
                .register(
                    __goondan::Step,
                    __layer_trim(__goondan::Clone::clone(&bound)),
                    __goondan::MiddlewareOptions::priority(0i32).named("trim"),
                )?;
            api.tools()
                .register(
                    __goondan::params::tool_item(&__tool_status::DESCRIPTOR)?,
                    __tool_status(__goondan::Clone::clone(&bound)),
                )?;
            __goondan::Ok(())
        })
    }
    fn __config_schema() -> __goondan::Value {
        #[allow(unused_imports)]
        use __goondan::params::NoSchema as _;
        __goondan::Option::None.unwrap_or_else(__goondan::params::empty_object_schema)
    }
    #[allow(non_camel_case_types)]
    struct __layer_trim(__Bound);
    #[automatically_derived]
    impl __goondan::Middleware<__goondan::Step> for __layer_trim {
        fn handle<'a>(
            &'a self,
            ctx: &'a mut __goondan::StepContext<'_>,
            next: __goondan::Next<'a, __goondan::Step>,
        ) -> __goondan::BoxFuture<'a, __goondan::Result<__goondan::StepResult>> {
            let bound = &self.0;
            let slots = __goondan::params::MiddlewareSlots::new(
                __goondan::Step,
                ctx,
                next,
                &bound.api,
            );
            let (p0, slots) = slots.take::<&mut StepContext<'_>, _>();
            let (p1, slots) = slots.take::<Next<'_, Step>, _>();
            __goondan::params::assert_uses_next::<__goondan::Step>(&slots);
            __goondan::Box::pin(
                __goondan::params::handler_future::<
                    __goondan::StepResult,
                    _,
                >(<Window>::trim(&bound.this, p0, p1)),
            )
        }
    }
    #[allow(non_camel_case_types)]
    struct __tool_status(__Bound);
    impl __tool_status {
        const DESCRIPTOR: __goondan::ToolDescriptor = __goondan::ToolDescriptor::new(
                "window__status",
                &Self::parameters,
            )
            .description("")
            .effect(__goondan::Effect::Once);
        fn parameters() -> __goondan::Value {
            #[allow(unused_imports)]
            use __goondan::params::NoSchema as _;
            __goondan::Option::None
                .unwrap_or_else(__goondan::params::empty_object_schema)
        }
    }
    #[automatically_derived]
    impl __goondan::ToolHandler for __tool_status {
        #[allow(unused_mut, unused_variables)]
        fn call<'a>(
            &'a self,
            ctx: &'a __goondan::ToolContext<'_>,
            input: __goondan::Value,
        ) -> __goondan::BoxFuture<'a, __goondan::Result<__goondan::ToolReply>> {
            __goondan::Box::pin(async move {
                let bound = &self.0;
                let slots = __goondan::params::ToolSlots::all();
                let mut inputs = __goondan::params::ToolInputs::new(
                    ctx,
                    input,
                    &bound.api,
                );
                __goondan::params::IntoToolOutput::into_reply(
                    <Window>::status(&bound.this).await,
                    __goondan::Option::Some(ctx),
                )
            })
        }
    }
    #[cfg(all(unix, not(target_vendor = "apple")))]
    const _: () = {
        const JSON: &[&__goondan::str] = &[
            "{\"apiVersion\":\"goondan.ai/v1\",\"package\":\"",
            __goondan::env!("CARGO_PKG_NAME"),
            "\",\"version\":\"",
            __goondan::env!("CARGO_PKG_VERSION"),
            "\",\"name\":\"window\",\"description\":\"\",\"middlewares\":[",
            ",{\"kind\":\"step\",\"function\":\"trim\",\"priority\":0,\"before\":[],\"after\":[]}",
            "],\"tools\":[",
            ",{\"name\":\"window__status\",\"description\":\"\",\"effect\":\"once\",\"timeoutMs\":null}",
            "],\"subscriptions\":[",
            "],\"requires\":[]}",
        ];
        #[used]
        #[unsafe(link_section = ".goondan")]
        static RECORD: [__goondan::u8; __goondan::record_len(JSON)] = __goondan::length_prefixed(
            JSON,
        );
    };
};
