impl Window {
    #[allow(clippy::needless_pass_by_value)]
    fn new() -> Self {
        Self
    }
    #[allow(
        clippy::needless_pass_by_value,
        clippy::unnecessary_wraps,
        clippy::unused_async,
        clippy::unused_self
    )]
    fn status(self) -> Result<usize> {
        Ok(0)
    }
    fn kept(&self) {}
}
#[automatically_derived]
impl ::goondan::__private::Extension for Window {
    const DESCRIPTOR: &'static ::goondan::__private::ExtensionDescriptor = ::goondan::__private::unreachable!();
}
::core::compile_error! {
    "`Window` is not a legal extension name; write `window`"
}
::core::compile_error! {
    "option `timeout` takes a string; write `timeout = \"5s\"`"
}
::core::compile_error! {
    "tool `status` must be async; add `async` before `fn`, or `blocking` to its `#[tool]` if it blocks its thread\nthe whole signature is `async fn status(&self, ctx: &ToolContext<'_>, input: Input) -> Result<Output>`"
}
::core::compile_error! {
    "tool `status` must take `&self`; write it instead of `self`\nthe whole signature is `async fn status(&self, ctx: &ToolContext<'_>, input: Input) -> Result<Output>`"
}
