#[goondan::extension(name = "hello", requires = ["workspace"], crate = agents)]
pub mod hello {
    //! Says hello.
    use agents::prelude::*;

    #[init]
    fn start(config: Config) -> Result<()> {
        Ok(())
    }

    /// Reads a file.
    #[tool(blocking, present = shown)]
    fn read(path: Path, api: &ExtensionApi) -> Result<String> {
        Ok(String::new())
    }

    #[cfg(unix)]
    #[middleware(toolCall)]
    async fn guard(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        next.run(ctx).await
    }
}
