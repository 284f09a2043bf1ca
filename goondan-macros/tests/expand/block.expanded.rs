/// Keeps the newest messages of a conversation.
impl Window {
    #[allow(clippy::needless_pass_by_value)]
    async fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        Ok(Self { max: config.max, api })
    }
    #[allow(clippy::unused_async, clippy::unused_self)]
    async fn trim(
        &self,
        next: Next<'_, Turn>,
        ctx: &mut TurnContext<'_>,
    ) -> Result<TurnResult> {
        next.run(ctx).await
    }
    /// Returns how many messages the window keeps.
    #[allow(
        clippy::needless_pass_by_value,
        clippy::unnecessary_wraps,
        clippy::unused_async,
        clippy::unused_self
    )]
    async fn status(&self, input: StatusInput, ctx: &ToolContext<'_>) -> Result<Status> {
        Ok(self.look(input, ctx))
    }
    #[allow(clippy::unused_async, clippy::unused_self)]
    async fn count(&self, event: &Event) -> Result<()> {
        Ok(())
    }
    #[allow(clippy::unused_async, clippy::unused_self)]
    async fn close(&self) {}
    fn look(&self, input: StatusInput, ctx: &ToolContext<'_>) -> Status {
        todo!()
    }
}
const _: () = {
    use ::goondan::__private as __goondan;
    static __DESCRIPTOR: __goondan::ExtensionDescriptor = __goondan::ExtensionDescriptor::new(
            "window",
            &__config_schema,
            &__register,
        )
        .description("Keeps the newest messages of a conversation.")
        .package(__goondan::env!("CARGO_PKG_NAME"), __goondan::env!("CARGO_PKG_VERSION"))
        .middlewares(
            &[
                __goondan::MiddlewareDescriptor::new(
                        __goondan::MiddlewareKind::Turn,
                        "trim",
                    )
                    .priority(-5i32)
                    .before(&[])
                    .after(&[]),
            ],
        )
        .tools(&[__tool_status::DESCRIPTOR])
        .subscriptions(&["turn.completed"])
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
            let (p0, slots) = slots.take::<ExtensionApi, _, _, _>();
            let (p1, slots) = slots.take::<Config, _, _, _>();
            let mut inputs = __goondan::params::InitInputs::new(
                __goondan::Clone::clone(&api),
                config,
            );
            let this = __goondan::params::IntoExtension::<
                Window,
            >::into_result(<Window>::new(p0(&mut inputs)?, p1(&mut inputs)?).await)?;
            let bound = __Bound {
                this: __goondan::Arc::new(this),
                api: __goondan::Clone::clone(&api),
            };
            api.pipeline()
                .register(
                    __goondan::Turn,
                    __layer_trim(__goondan::Clone::clone(&bound)),
                    __goondan::MiddlewareOptions::priority(-5i32).named("trim"),
                )?;
            api.tools()
                .register(
                    __goondan::params::tool_item(&__tool_status::DESCRIPTOR)?,
                    __tool_status(__goondan::Clone::clone(&bound)),
                )?;
            api.host()
                .register(
                    __goondan::AnyRegistration::Subscription(
                        "turn.completed".parse()?,
                        __goondan::Arc::new(__on_count(__goondan::Clone::clone(&bound))),
                    ),
                )?;
            api.host()
                .register(
                    __goondan::AnyRegistration::Cleanup(
                        __goondan::Arc::new(
                            __cleanup_close(__goondan::Clone::clone(&bound)),
                        ),
                    ),
                )?;
            __goondan::Ok(())
        })
    }
    fn __config_schema() -> __goondan::Value {
        #[allow(unused_imports)]
        use __goondan::params::NoSchema as _;
        __goondan::params::SchemaOf::<ExtensionApi>::new().assert_object();
        __goondan::params::SchemaOf::<Config>::new().assert_object();
        __goondan::Option::None
            .or_else(|| __goondan::params::SchemaOf::<ExtensionApi>::new().config())
            .or_else(|| __goondan::params::SchemaOf::<Config>::new().config())
            .unwrap_or_else(__goondan::params::empty_object_schema)
    }
    #[allow(non_camel_case_types)]
    struct __layer_trim(__Bound);
    #[automatically_derived]
    impl __goondan::Middleware<__goondan::Turn> for __layer_trim {
        fn handle<'a>(
            &'a self,
            ctx: &'a mut __goondan::TurnContext<'_>,
            next: __goondan::Next<'a, __goondan::Turn>,
        ) -> __goondan::BoxFuture<'a, __goondan::Result<__goondan::TurnResult>> {
            let bound = &self.0;
            let slots = __goondan::params::MiddlewareSlots::new(
                __goondan::Turn,
                ctx,
                next,
                &bound.api,
            );
            let (p0, slots) = slots.take::<Next<'_, Turn>, _>();
            let (p1, slots) = slots.take::<&mut TurnContext<'_>, _>();
            __goondan::params::assert_uses_next::<__goondan::Turn>(&slots);
            __goondan::Box::pin(
                __goondan::params::handler_future::<
                    __goondan::TurnResult,
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
            .description("Returns how many messages the window keeps.")
            .effect(__goondan::Effect::Read)
            .timeout(__goondan::Duration::from_millis(5000u64))
            .line(__goondan::LineTemplate::new("{query}"));
        fn parameters() -> __goondan::Value {
            #[allow(unused_imports)]
            use __goondan::params::NoSchema as _;
            __goondan::params::SchemaOf::<StatusInput>::new().assert_object();
            __goondan::params::SchemaOf::<&ToolContext<'_>>::new().assert_object();
            __goondan::Option::None
                .or_else(|| __goondan::params::SchemaOf::<StatusInput>::new().input())
                .or_else(|| {
                    __goondan::params::SchemaOf::<&ToolContext<'_>>::new().input()
                })
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
                let (p0, slots) = slots.take::<StatusInput, _>();
                let (p1, slots) = slots.take::<&ToolContext<'_>, _>();
                let mut inputs = __goondan::params::ToolInputs::new(
                    ctx,
                    input,
                    &bound.api,
                );
                __goondan::params::IntoToolOutput::into_reply(
                    <Window>::status(&bound.this, p0(&mut inputs)?, p1(&mut inputs)?)
                        .await,
                    __goondan::Option::Some(ctx),
                )
            })
        }
        fn presenter(&self) -> __goondan::Option<&dyn __goondan::Presenter> {
            __goondan::Option::Some(&const { __goondan::LineTemplate::new("{query}") })
        }
    }
    #[allow(non_camel_case_types)]
    struct __on_count(__Bound);
    #[automatically_derived]
    impl __goondan::EventHandler for __on_count {
        #[allow(unused_variables)]
        fn handle<'a>(
            &'a self,
            event: &'a __goondan::Event,
        ) -> __goondan::BoxFuture<'a, __goondan::Result<()>> {
            let bound = &self.0;
            let slots = __goondan::params::EventSlots::new(event, &bound.api);
            let (p0, slots) = slots.take::<&Event, _, _>();
            __goondan::Box::pin(async move {
                __goondan::params::IntoResult::<
                    (),
                >::into_result(<Window>::count(&bound.this, p0).await)
            })
        }
    }
    #[allow(non_camel_case_types)]
    struct __cleanup_close(__Bound);
    #[automatically_derived]
    impl __goondan::CleanupHandler for __cleanup_close {
        #[allow(unused_variables)]
        fn clean_up(&self) -> __goondan::BoxFuture<'_, __goondan::Result<()>> {
            let bound = &self.0;
            let slots = __goondan::params::CleanupSlots::new(&bound.api);
            __goondan::Box::pin(async move {
                __goondan::params::IntoUnit::into_result(
                    <Window>::close(&bound.this).await,
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
            "\",\"name\":\"window\",\"description\":\"Keeps the newest messages of a conversation.\",\"middlewares\":[",
            ",{\"kind\":\"turn\",\"function\":\"trim\",\"priority\":-5,\"before\":[],\"after\":[]}",
            "],\"tools\":[",
            ",{\"name\":\"window__status\",\"description\":\"Returns how many messages the window keeps.\",\"effect\":\"read\",\"timeoutMs\":5000}",
            "],\"subscriptions\":[",
            ",\"turn.completed\"",
            "],\"requires\":[]}",
        ];
        #[used]
        #[unsafe(link_section = ".goondan")]
        static RECORD: [__goondan::u8; __goondan::record_len(JSON)] = __goondan::length_prefixed(
            JSON,
        );
    };
};
