//! An extension that makes secrets while it runs.

use goondan::Secret;
use goondan::prelude::*;
use goondan_lock::Lock;

/// Keeps a token, as an extension does that signs in somewhere.
pub struct Tokens {
    api: ExtensionApi,
    token: Lock<Option<Secret>>,
    clone: Lock<Option<Secret>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Issued {
    /// What the tokens begin with; each ends with its number.
    prefix: String,
    tokens: u32,
}

#[goondan::extension(name = "tokens")]
impl Tokens {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api, token: Lock::default(), clone: Lock::default() }
    }

    fn set(place: &Lock<Option<Secret>>, token: Option<Secret>) {
        *place.lock() = token;
    }

    fn text(&self) -> String {
        let token = self.token.lock();
        token.as_ref().map(|token| token.expose().to_owned()).unwrap_or_default()
    }

    /// Replaces the token many times.
    #[tool]
    async fn rotate(&self, input: Issued) -> Result<()> {
        for number in 0..input.tokens {
            Self::set(&self.token, Some(Secret::new(format!("{}{number}", input.prefix))));
        }
        Ok(())
    }

    /// Keeps a clone of the token.
    #[tool]
    async fn keep(&self) -> Result<()> {
        let token = self.token.lock().clone();
        Self::set(&self.clone, token);
        Ok(())
    }

    /// Forgets the clone.
    #[tool]
    async fn forget(&self) -> Result<()> {
        Self::set(&self.clone, None);
        Ok(())
    }

    /// Fails with the token as the text of a cause.
    #[tool]
    async fn fail(&self, ctx: &ToolContext<'_>) -> Result<()> {
        let token = self.text();
        ctx.progress(1.0, None, &format!("signing in with {token}"));
        self.api.logger().with("token", &token).warn(format!("refused: {token}"));
        Err(std::io::Error::other(format!("refused: {token}")).into())
    }

    /// Panics with the token.
    #[tool]
    #[expect(clippy::panic, reason = "this is what panics tell")]
    async fn panic(&self) -> Result<()> {
        panic!("refused: {}", self.text())
    }
}
