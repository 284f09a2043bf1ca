//! Context from a search.

use goondan::prelude::*;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    documents: Vec<String>,
}

/// Shows the model what a search finds for the newest input.
pub struct Search {
    documents: Vec<String>,
}

#[goondan::extension(name = "search")]
impl Search {
    #[init]
    fn new(config: Config) -> Self {
        Self { documents: config.documents }
    }

    #[middleware(step)]
    async fn show(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let input = ctx.input().input.as_deref().unwrap_or_default();
        if let Some(found) = self.find(input) {
            ctx.project(MessageEvent::append(Message::user(format!("Found: {found}"))));
        }
        next.run(ctx).await
    }

    fn find(&self, input: &str) -> Option<&String> {
        self.documents.iter().find(|document| input.split(' ').any(|word| document.contains(word)))
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::testing::Chat;

    use super::Search;

    #[tokio::test]
    async fn the_model_reads_the_findings_of_this_turn_alone() -> goondan::Result<()> {
        let documents = json!({ "documents": ["tea grows in Assam", "rice grows in Bali"] });
        let chat = Chat::with::<Search>(documents).start().await?;
        chat.say("tea?").await?;
        assert!(!chat.last_request().transcript().contains(&"user: Found: tea grows in Assam".to_owned()));
        chat.say("and tea").await?;
        chat.say("and rice").await?;
        let transcript = chat.last_request().transcript();
        assert_eq!(transcript.last().unwrap(), "user: Found: rice grows in Bali");
        assert_eq!(transcript.iter().filter(|line| line.contains("Found")).count(), 1, "{transcript:?}");
        assert!(!chat.transcript().await.iter().any(|line| line.contains("Found")));
        Ok(())
    }
}
