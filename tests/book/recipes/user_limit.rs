//! A limit per user.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use goondan::extension::SharedState;
use goondan::name::TurnId;
use goondan::prelude::*;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    max_turns: usize,
}

/// Each user's hour: when it began, in seconds, and the turns that it had.
type Hours = BTreeMap<String, (u64, BTreeSet<TurnId>)>;

/// Limits the turns of each user in an hour, over all conversations.
pub struct UserLimit {
    max: usize,
    hours: SharedState<Hours>,
}

/// Counts a turn of `user` that runs `now`, and returns how many there were in this hour. One that was interrupted and
/// goes on has the same id.
fn count(hours: &mut Hours, user: &str, turn: &TurnId, now: u64) -> usize {
    hours.retain(|_, (begin, _)| now < *begin + 60 * 60);
    let (_, turns) = hours.entry(user.to_owned()).or_insert((now, BTreeSet::new()));
    turns.insert(turn.clone());
    turns.len()
}

#[goondan::extension(name = "user-limit")]
impl UserLimit {
    #[init]
    fn new(config: Config, ctx: InitContext) -> Result<Self> {
        Ok(Self { max: config.max_turns, hours: ctx.shared_state()? })
    }

    #[middleware(turn, priority = -100)]
    async fn limit(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let principal = ctx.input().auth.as_ref().and_then(|auth| auth.principal.as_ref());
        let user = principal.map(|user| user.id.as_str()).ok_or_else(|| Error::msg("nobody is signed in"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        // Other conversations wait here, also those of other processes.
        if self.hours.update(|hours| count(hours, user, ctx.turn_id(), now))? > self.max {
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
