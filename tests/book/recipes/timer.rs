//! Timers in a library.

use std::time::Duration;

use goondan::prelude::*;
use tokio::task::JoinHandle;

/// Counts the minutes for which a conversation is open.
pub struct Minutes {
    task: JoinHandle<()>,
}

#[goondan::extension(name = "minutes")]
impl Minutes {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(60)).await;
                match api.state().update(|minutes: &mut u64| *minutes += 1) {
                    Ok(()) => api.events().emit("minutes.passed", ()),
                    Err(error) => api.logger().error(error.to_string()),
                }
            }
        });
        Self { task }
    }

    #[cleanup]
    async fn stop(&self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use goondan::json;
    use goondan::testing::{Chat, time};

    use super::Minutes;

    #[tokio::test]
    async fn minutes_are_counted_between_turns_and_kept() -> goondan::Result<()> {
        time::pause();
        let mut chat = Chat::with::<Minutes>(json!({})).start().await?;
        while chat.events("minutes.passed").len() < 3 {
            time::advance(Duration::from_secs(60)).await;
        }
        chat.restart().await?;
        let states = chat.instance().states().await?;
        let (_, minutes) = states.iter().find(|(name, _)| name.as_str() == "minutes").unwrap();
        assert!(minutes.as_u64() >= Some(3), "{minutes}");
        Ok(())
    }
}
