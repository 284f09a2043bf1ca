#[goondan::extension(name = "Window")]
impl Window {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(timeout = 5)]
    fn status(self) -> Result<usize> {
        Ok(0)
    }

    fn kept(&self) {}
}
