#[goondan::extension(name = "window")]
impl Window {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn trim(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let half_typed = ctx.
        next.run(ctx).await
    }

    #[tool]
    async fn status(&self) -> Result<usize> {
        let half_typed = match self.
    }
}
