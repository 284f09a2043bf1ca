pub mod hello {
    //! Says hello.
    use agents::prelude::*;
    #[allow(clippy::needless_pass_by_value)]
    fn start(config: Config) -> Result<()> {
        Ok(())
    }
    /// Reads a file.
    #[allow(
        clippy::needless_pass_by_value,
        clippy::unnecessary_wraps,
        clippy::unused_async,
        clippy::unused_self
    )]
    fn read(path: Path, api: &ExtensionApi) -> Result<String> {
        Ok(String::new())
    }
    #[cfg(unix)]
    #[allow(clippy::unused_async, clippy::unused_self)]
    async fn guard(
        ctx: &mut ToolCallContext<'_>,
        next: Next<'_, ToolCall>,
    ) -> Result<ToolCallResult> {
        next.run(ctx).await
    }
    ///The extension `hello` as a type. It has no values.
    pub enum Extension {}
    const _: () = {
        use agents::__private as __goondan;
        static __DESCRIPTOR: __goondan::ExtensionDescriptor = __goondan::ExtensionDescriptor::new(
                "hello",
                &__config_schema,
                &__register,
            )
            .description("Says hello.")
            .package(
                __goondan::env!("CARGO_PKG_NAME"),
                __goondan::env!("CARGO_PKG_VERSION"),
            )
            .middlewares(
                &[
                    #[cfg(unix)]
                    __goondan::MiddlewareDescriptor::new(
                            __goondan::MiddlewareKind::ToolCall,
                            "guard",
                        )
                        .priority(0i32)
                        .before(&[])
                        .after(&[]),
                ],
            )
            .tools(&[__tool_read::DESCRIPTOR])
            .subscriptions(&[])
            .requires(&["workspace"])
            .guard(false);
        #[automatically_derived]
        impl __goondan::Extension for Extension {
            const DESCRIPTOR: &'static __goondan::ExtensionDescriptor = &__DESCRIPTOR;
        }
        __goondan::inventory::submit! {
            __goondan::LinkedExtension::new(& __DESCRIPTOR)
        }
        #[allow(dead_code)]
        struct __Bound {
            api: __goondan::ExtensionApi,
        }
        #[automatically_derived]
        impl __goondan::Clone for __Bound {
            fn clone(&self) -> Self {
                Self {
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
                let (p0, slots) = slots.take::<Config, _, _, _>();
                let mut inputs = __goondan::params::InitInputs::new(
                    __goondan::Clone::clone(&api),
                    config,
                );
                __goondan::params::IntoUnit::into_result(start(p0(&mut inputs)?))?;
                let bound = __Bound {
                    api: __goondan::Clone::clone(&api),
                };
                api.tools()
                    .register(
                        __goondan::params::tool_item(&__tool_read::DESCRIPTOR)?,
                        __tool_read(__goondan::Clone::clone(&bound)),
                    )?;
                #[cfg(unix)]
                api.pipeline()
                    .register(
                        __goondan::ToolCall,
                        __layer_guard(__goondan::Clone::clone(&bound)),
                        __goondan::MiddlewareOptions::priority(0i32).named("guard"),
                    )?;
                __goondan::Ok(())
            })
        }
        fn __config_schema() -> __goondan::Value {
            #[allow(unused_imports)]
            use __goondan::params::NoSchema as _;
            __goondan::params::SchemaOf::<Config>::new().assert_object();
            __goondan::Option::None
                .or_else(|| __goondan::params::SchemaOf::<Config>::new().config())
                .unwrap_or_else(__goondan::params::empty_object_schema)
        }
        #[allow(non_camel_case_types)]
        struct __tool_read(__Bound);
        impl __tool_read {
            const DESCRIPTOR: __goondan::ToolDescriptor = __goondan::ToolDescriptor::new(
                    "hello__read",
                    &Self::parameters,
                )
                .description("Reads a file.")
                .effect(__goondan::Effect::Once);
            fn parameters() -> __goondan::Value {
                #[allow(unused_imports)]
                use __goondan::params::NoSchema as _;
                __goondan::params::SchemaOf::<Path>::new().assert_object();
                __goondan::params::SchemaOf::<&ExtensionApi>::new().assert_object();
                __goondan::Option::None
                    .or_else(|| __goondan::params::SchemaOf::<Path>::new().input())
                    .or_else(|| {
                        __goondan::params::SchemaOf::<&ExtensionApi>::new().input()
                    })
                    .unwrap_or_else(__goondan::params::empty_object_schema)
            }
        }
        #[automatically_derived]
        impl __goondan::ToolHandler for __tool_read {
            #[allow(unused_mut, unused_variables)]
            fn call<'a>(
                &'a self,
                ctx: &'a __goondan::ToolContext<'_>,
                input: __goondan::Value,
            ) -> __goondan::BoxFuture<'a, __goondan::Result<__goondan::ToolReply>> {
                let bound = __goondan::Clone::clone(&self.0);
                __goondan::Box::pin(
                    __goondan::params::run_blocking(
                        "hello__read",
                        move || {
                            let slots = __goondan::params::ToolSlots::blocking();
                            let (p0, slots) = slots.take::<Path, _>();
                            let (p1, slots) = slots.take::<&ExtensionApi, _>();
                            let mut inputs = __goondan::params::ToolInputs::blocking(
                                input,
                                &bound.api,
                            );
                            __goondan::params::IntoToolOutput::into_reply(
                                read(p0(&mut inputs)?, p1(&mut inputs)?),
                                __goondan::Option::None,
                            )
                        },
                    ),
                )
            }
            fn presenter(&self) -> __goondan::Option<&dyn __goondan::Presenter> {
                __goondan::Option::Some(&shown)
            }
        }
        #[cfg(unix)]
        #[allow(non_camel_case_types)]
        struct __layer_guard(__Bound);
        #[cfg(unix)]
        #[automatically_derived]
        impl __goondan::Middleware<__goondan::ToolCall> for __layer_guard {
            fn handle<'a>(
                &'a self,
                ctx: &'a mut __goondan::ToolCallContext<'_>,
                next: __goondan::Next<'a, __goondan::ToolCall>,
            ) -> __goondan::BoxFuture<'a, __goondan::Result<__goondan::ToolCallResult>> {
                let bound = &self.0;
                let slots = __goondan::params::MiddlewareSlots::new(
                    __goondan::ToolCall,
                    ctx,
                    next,
                    &bound.api,
                );
                let (p0, slots) = slots.take::<&mut ToolCallContext<'_>, _>();
                let (p1, slots) = slots.take::<Next<'_, ToolCall>, _>();
                __goondan::params::assert_uses_next::<__goondan::ToolCall>(&slots);
                __goondan::Box::pin(
                    __goondan::params::handler_future::<
                        __goondan::ToolCallResult,
                        _,
                    >(guard(p0, p1)),
                )
            }
        }
        #[cfg(all(unix, not(target_vendor = "apple")))]
        const _: () = {
            const JSON: &[&__goondan::str] = &[
                "{\"apiVersion\":\"goondan.ai/v1\",\"package\":\"",
                __goondan::env!("CARGO_PKG_NAME"),
                "\",\"version\":\"",
                __goondan::env!("CARGO_PKG_VERSION"),
                "\",\"name\":\"hello\",\"description\":\"Says hello.\",\"middlewares\":[",
                #[cfg(unix)]
                ",{\"kind\":\"toolCall\",\"function\":\"guard\",\"priority\":0,\"before\":[],\"after\":[]}",
                "],\"tools\":[",
                ",{\"name\":\"hello__read\",\"description\":\"Reads a file.\",\"effect\":\"once\",\"timeoutMs\":null}",
                "],\"subscriptions\":[",
                "],\"requires\":[\"workspace\"]}",
            ];
            #[used]
            #[unsafe(link_section = ".goondan")]
            static RECORD: [__goondan::u8; __goondan::record_len(JSON)] = __goondan::length_prefixed(
                JSON,
            );
        };
    };
}
