/// Keeps the newest messages of a conversation.
#[goondan::extension(name = "window")]
impl Window {
    #[init]
    async fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        Ok(Self { max: config.max, api })
    }

    #[middleware(turn, priority = -5)]
    async fn trim(&self, next: Next<'_, Turn>, ctx: &mut TurnContext<'_>) -> Result<TurnResult> {
        next.run(ctx).await
    }

    /// Returns how many messages the window keeps.
    #[tool(effect = read, timeout = "5s", present = "{query}")]
    async fn status(&self, input: StatusInput, ctx: &ToolContext<'_>) -> Result<Status> {
        Ok(self.look(input, ctx))
    }

    #[on("turn.completed")]
    async fn count(&self, event: &Event) -> Result<()> {
        Ok(())
    }

    #[cleanup]
    async fn close(&self) {}

    fn look(&self, input: StatusInput, ctx: &ToolContext<'_>) -> Status {
        todo!()
    }
}
