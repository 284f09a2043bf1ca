//! An extension that reveals its key wherever it can: in errors, panics, logs, events and recorded requests. Beside it,
//! one that speaks to the terminal.

mod hostile;
mod live;
mod locked;

use goondan::Secret;
use goondan::middleware::Failure;
use goondan::prelude::*;

/// The config of the extension.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Config {
    /// The key as plain text, as an extension takes it that does not use [`Secret`].
    #[schemars(length(max = 200))]
    key: String,
    /// The same key as a [`Secret`].
    typed: Option<Secret>,
    /// Whether the key is written backwards: the extension makes a secret of it while it runs, like a token that a
    /// server sends.
    #[serde(default)]
    reversed: bool,
    /// Which leak a run tries out.
    leak: Leak,
}

/// Where the key is revealed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Leak {
    Nowhere,
    InitError,
    InitPanic,
    Turn,
    Step,
    StepPanic,
    Cleanup,
    Recovery,
}

pub(crate) struct Leaky {
    config: Config,
    api: ExtensionApi,
    _token: Option<Secret>,
}

/// Reveals its key.
#[goondan::extension(name = "leaky")]
impl Leaky {
    #[init]
    fn new(api: ExtensionApi, mut config: Config) -> Result<Self> {
        let token = config.reversed.then(|| Secret::new(config.key.chars().rev().collect::<String>()));
        if let Some(token) = &token {
            config.key = token.expose().to_owned();
        }
        let key = &config.key;
        match config.leak {
            Leak::InitError => return Err(Error::msg(format!("no service for {config:?}")).suggest(key.clone())),
            #[expect(clippy::panic, reason = "this is what panics tell")]
            Leak::InitPanic => panic!("no service for {config:?}"),
            _ => {}
        }
        Ok(Self { config, api, _token: token })
    }

    #[middleware(turn)]
    async fn around_turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let key = &self.config.key;
        let log = self.api.logger();
        log.with("key", key).with(key, 1).warn(format!("the key is {key}, or {key:?}"));
        let span = tracing::info_span!("call", key, shown = ?key);
        span.in_scope(|| tracing::warn!(key, shown = ?key, "the typed key is {:?}", self.config.typed));
        self.api.events().emit("leaky.key", (key,));
        if self.config.leak == Leak::Turn {
            return Err(Error::new(key.clone(), format!("turned away: {key}")).suggest(format!("try {key}")));
        }
        next.run(ctx).await
    }

    #[middleware(step)]
    async fn around_step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let key = &self.config.key;
        match self.config.leak {
            Leak::Step => Err(std::io::Error::other(format!("refused: {key}")).into()),
            #[expect(clippy::panic, reason = "this is what panics tell")]
            Leak::StepPanic => panic!("refused: {key:?}"),
            _ => next.run(ctx).await,
        }
    }

    #[middleware(toolCall)]
    async fn around_call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let fallback = |failure: Failure<ToolCall>, ctx: &ToolCallContext<'_>| {
            let error = Error::msg(format!("{}, with {}", failure.error(), self.config.key));
            failure.recover(ctx, goondan::middleware::ToolCallDraft::error(error))
        };
        match next.catch(ctx).await {
            Ok(mut result) if self.config.leak == Leak::Recovery => {
                let message = format!("no: {}", self.config.key);
                let mut error = goondan::middleware::ToolError::new(message.clone());
                error.suggestion = Some(message.clone());
                error.code = Some(message);
                result.set_error(error);
                Ok(result)
            }
            Ok(result) => Ok(result),
            Err(failure) => Ok(fallback(failure, ctx)),
        }
    }

    #[on("leaky.*")]
    async fn hear(&self, event: &Event) -> Result<()> {
        Err(Error::msg(format!("heard {event:?}")))
    }

    /// Fails with the key.
    #[tool(effect = read)]
    async fn fail(&self) -> Result<String> {
        Err(Error::new(self.config.key.clone(), format!("401 for {}", self.config.key)))
    }

    /// Fails with the key across the character at which long messages are cut.
    #[tool(effect = read)]
    async fn fail_at_length(&self) -> Result<String> {
        Err(Error::msg(format!("{}{}{}", "x".repeat(970), self.config.key, "y".repeat(100))))
    }

    /// Panics with the key.
    #[tool(effect = read)]
    #[expect(clippy::panic, reason = "this is what panics tell")]
    async fn panic(&self) -> Result<String> {
        panic!("401 for {}", self.config.key)
    }

    /// Answers with the key, which is legal: the conversation stores what tools answer.
    #[tool(effect = read)]
    async fn tell(&self) -> Result<String> {
        Ok(self.config.key.clone())
    }

    #[cleanup]
    async fn clean_up(&self) -> Result<()> {
        if self.config.leak == Leak::Cleanup {
            return Err(Error::msg(format!("cannot sign off {}", self.config.key)));
        }
        Ok(())
    }
}
