//! Testing with virtual time.

/// Has a tool that takes its time.
#[goondan::extension(name = "slow")]
pub mod slow {
    use std::time::Duration;

    use goondan::prelude::*;

    /// Answers after a day.
    #[tool]
    async fn wait() -> Result<()> {
        tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::testing::{Chat, time};

    use super::slow;

    #[tokio::test]
    async fn a_call_has_a_deadline() -> goondan::Result<()> {
        time::pause();
        let mut chat = Chat::with::<slow::Extension>(json!({})).start().await?;
        let result = chat.call("slow__wait", json!({})).await?;
        assert_eq!(result.error().unwrap().code.as_deref(), Some("E_TOOL_TIMEOUT"));
        Ok(())
    }
}
