//! A cache.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use goondan::json;
use goondan::prelude::*;

/// Asks the tool `weather__today` once in ten minutes for the same thing.
#[derive(Default)]
pub struct Cache {
    replies: Mutex<BTreeMap<String, (Instant, ToolReply)>>,
}

const FRESH: Duration = Duration::from_secs(600);

#[goondan::extension(name = "cache")]
impl Cache {
    #[init]
    fn new() -> Self {
        Self::default()
    }

    #[middleware(toolCall)]
    async fn look_up(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let call = json!([ctx.tool_name(), ctx.args()]).to_string();
        let known = self.replies.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned();
        if let Some((_, reply)) = known.filter(|(since, _)| since.elapsed() < FRESH) {
            ctx.answer_with(reply);
        }
        let result = next.run(ctx).await?;
        if let (None, "weather__today", Some(reply)) = (result.prepared_by(), ctx.tool_name(), result.to_reply()) {
            self.replies.lock().unwrap_or_else(PoisonError::into_inner).insert(call, (Instant::now(), reply));
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use goondan::json;
    use goondan::prelude::*;
    use goondan::testing::Chat;

    use super::Cache;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Place {
        city: String,
    }

    /// Counts its reports.
    #[derive(Default)]
    struct Weather {
        reports: AtomicU32,
    }

    #[goondan::extension(name = "weather")]
    impl Weather {
        #[init]
        fn new() -> Self {
            Self::default()
        }

        /// Reports the weather of today.
        #[tool(effect = read)]
        async fn today(&self, place: Place) -> Result<String> {
            let number = self.reports.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(format!("report {number}: it rains in {}", place.city))
        }
    }

    #[tokio::test]
    async fn the_second_call_is_answered_from_the_cache() -> goondan::Result<()> {
        let mut chat = Chat::with::<Cache>(json!({})).with::<Weather>(json!({})).start().await?;
        for (city, report) in [("Seoul", 1), ("Seoul", 1), ("Bonn", 2), ("Seoul", 1)] {
            let result = chat.call("weather__today", json!({ "city": city })).await?;
            assert_eq!(result.output().unwrap(), &json!(format!("report {report}: it rains in {city}")));
        }
        assert_eq!(chat.events("tool.called").len(), 2);
        Ok(())
    }
}
