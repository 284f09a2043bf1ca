//! The `goondan` command with a provider of models of its own.

use goondan::model::{DeltaSink, Model, ModelProvider, ModelRequest, ModelResponse, ProviderContext};
use goondan::{BoxFuture, Result, prelude::*};

/// Repeats what it is told.
#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What every answer begins with.
    prefix: String,
}

impl ModelProvider for Echo {
    const NAME: &'static str = "echo";
    const DESCRIPTION: &'static str = "Repeats what it is told.";
    type Config = Self;

    fn build(config: Self, _: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        Ok(Box::new(config))
    }
}

goondan::model_provider!(Echo);

impl Model for Echo {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let told = request.messages().last().map(|message| message.content.text().into_owned()).unwrap_or_default();
        Box::pin(std::future::ready(Ok(ModelResponse::text(format!("{}{told}", self.prefix)))))
    }
}

fn main() -> std::process::ExitCode {
    goondan_cli::main()
}
