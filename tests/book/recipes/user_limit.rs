//! A limit per user.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use goondan::prelude::*;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    max_turns: u32,
}

/// Limits the turns of each user in an hour, over all conversations.
pub struct UserLimit {
    max: u32,
}

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Each user's hour: when it began, and how many turns it had. A static, because conversations share no other value.
static TURNS: Mutex<BTreeMap<String, (Instant, u32)>> = Mutex::new(BTreeMap::new());

fn count(user: &str) -> u32 {
    let mut all = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|_, (begin, _)| begin.elapsed() < HOUR);
    let (_, turns) = all.entry(user.to_owned()).or_insert((Instant::now(), 0));
    *turns += 1;
    *turns
}

#[goondan::extension(name = "user-limit")]
impl UserLimit {
    #[init]
    fn new(config: Config) -> Self {
        Self { max: config.max_turns }
    }

    #[middleware(turn, priority = -100)]
    async fn limit(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let principal = ctx.input().auth.as_ref().and_then(|auth| auth.principal.as_ref());
        let user = principal.map(|user| user.id.as_str()).ok_or_else(|| Error::msg("nobody is signed in"))?;
        if count(user) > self.max {
            let problem = format!("`{user}` has had {} turns in this hour", self.max);
            return Err(Error::new("USER_LIMIT", problem));
        }
        next.run(ctx).await
    }
}

#[cfg(test)]
mod tests {
    use goondan::event::{AgentEvent, Auth, Principal};
    use goondan::json;
    use goondan::testing::Chat;

    use super::UserLimit;

    fn from(user: &str) -> AgentEvent {
        let mut event = AgentEvent::input("hello");
        event.auth = Some(Auth::new(Principal::new("user", user)));
        event
    }

    #[tokio::test]
    async fn the_turns_of_a_user_count_in_all_conversations() -> goondan::Result<()> {
        let chat = Chat::with::<UserLimit>(json!({ "maxTurns": 2 })).start().await?;
        let other = chat.agent().instance("other").await?;
        chat.say(from("ada")).await?;
        other.run(from("ada")).await?;
        assert_eq!(chat.say(from("ada")).await.unwrap_err().code(), "USER_LIMIT");
        chat.say(from("bob")).await?;
        assert!(chat.say("hello").await.unwrap_err().to_string().contains("nobody is signed in"));
        Ok(())
    }
}
