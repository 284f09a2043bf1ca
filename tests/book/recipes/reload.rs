//! State that survives a reload.

/// What the first build stored.
pub mod first_build {
    use goondan::prelude::*;

    #[derive(Debug, Default, Deserialize, Serialize)]
    pub struct Visits {
        count: u64,
    }

    /// Counts the turns of a conversation.
    #[goondan::extension(name = "visits")]
    pub mod visits {
        use super::*;

        /// Returns how many turns there were.
        #[tool(effect = read)]
        async fn count(api: &ExtensionApi) -> Result<u64> {
            Ok(api.state().get::<Visits>()?.unwrap_or_default().count)
        }

        #[middleware(turn)]
        async fn add(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>, api: &ExtensionApi) -> Result<TurnResult> {
            api.state().update(|visits: &mut Visits| visits.count += 1)?;
            next.run(ctx).await
        }
    }
}

/// What a later build makes of it.
pub mod second_build {
    use goondan::prelude::*;

    /// The state. A new field has a default, so that what an older build has stored can be read.
    #[derive(Debug, Default, Deserialize, Serialize)]
    pub struct Visits {
        count: u64,
        #[serde(default)]
        last_input: String,
    }

    /// Counts the turns of a conversation, and remembers the last input.
    #[goondan::extension(name = "visits")]
    pub mod visits {
        use super::*;

        /// Returns how many turns there were, and the last input before this turn.
        #[tool(effect = read)]
        async fn count(api: &ExtensionApi) -> Result<Visits> {
            Ok(api.state().get()?.unwrap_or_default())
        }

        #[middleware(turn)]
        async fn add(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>, api: &ExtensionApi) -> Result<TurnResult> {
            let input = ctx.input().input.clone().unwrap_or_default();
            let result = next.run(ctx).await;
            api.state().update(|visits: &mut Visits| {
                visits.count += 1;
                visits.last_input = input;
            })?;
            result
        }
    }
}

#[cfg(test)]
mod tests {
    use goondan::model::{ScriptItem, ScriptedModel};
    use goondan::{Agent, Result, json};

    use super::{first_build, second_build};

    #[tokio::test]
    async fn the_second_build_reads_what_the_first_stored() -> Result<()> {
        let model = || ScriptedModel::new([ScriptItem::say("ok").repeat()]);
        let first = Agent::builder("assistant").model(model());
        let first = first.extension::<first_build::visits::Extension>(json!({})).build()?;
        let second = Agent::builder("assistant").model(model());
        let second = second.extension::<second_build::visits::Extension>(json!({})).build()?;
        let instance = first.instance("user:42").await?;
        instance.run("one").await?;

        first.reload(&second).await?;
        instance.run("two").await?;

        let states = instance.states().await?;
        assert_eq!(states.values().collect::<Vec<_>>(), [&json!({ "count": 2, "last_input": "two" })]);
        Ok(())
    }
}
