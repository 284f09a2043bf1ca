//! Values that the extensions of a conversation share.
// LEGACY-SHARED-01, LEGACY-SHARED-02

use goondan::name::ExtensionName;
use goondan::prelude::*;
use goondan::{Map, Value};
use goondan_lock::Lock;

/// Where middlewares find the values in their metadata.
const METADATA: &str = "shared";

/// The extension.
#[derive(Debug)]
pub struct Shared {
    api: ExtensionApi,
    turn: Given,
    step: Given,
}

/// The values as they were last put into the metadata of the running turn, step or call.
type Given = Lock<Map<String, Value>>;

/// Keeps values that the extensions of a conversation share.
///
/// Middlewares read and change them in their metadata, under `shared`. Tools and event handlers emit `shared.set` with
/// a key and a value.
// Each kind has a layer around all others, and one inside of them: what is changed before `next` is stored before the
// steps of the turn and the calls of the step, and what those change is in the metadata after `next`.
#[goondan::extension(name = "shared")]
impl Shared {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api, turn: Given::default(), step: Given::default() }
    }

    #[middleware(turn, priority = -900)]
    async fn around_turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.exchange(&self.turn, ctx.metadata_mut())?;
        let result = next.run(ctx).await;
        self.exchange(&self.turn, ctx.metadata_mut())?;
        result
    }

    #[middleware(turn, priority = 900)]
    async fn inside_turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.around_turn(ctx, next).await
    }

    #[middleware(step, priority = -900)]
    async fn around_step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        self.exchange(&self.step, ctx.metadata_mut())?;
        let result = next.run(ctx).await;
        self.exchange(&self.step, ctx.metadata_mut())?;
        result
    }

    #[middleware(step, priority = 900)]
    async fn inside_step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        self.around_step(ctx, next).await
    }

    #[middleware(toolCall, priority = -900)]
    async fn around_call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let given = Given::default();
        self.exchange(&given, ctx.metadata_mut())?;
        let result = next.run(ctx).await;
        self.exchange(&given, ctx.metadata_mut())?;
        result
    }

    #[on("shared.set")]
    async fn set(&self, event: &Event) -> Result<()> {
        match event.args() {
            [Value::String(key), value] => self.change([(key.clone(), value.clone())]),
            _ => Err(Error::msg("`shared.set` takes a key and a value")),
        }
    }
}

impl Shared {
    /// Stores what was changed in `metadata`, and puts the current values there.
    fn exchange(&self, given: &Given, metadata: &mut Map<String, Value>) -> Result<()> {
        let mut given = given.lock();
        if let Some(Value::Object(values)) = metadata.shift_remove(METADATA) {
            // Only what differs: others may have changed the rest meanwhile.
            let removed: Vec<_> = given.keys().filter(|key| !values.contains_key(*key)).cloned().collect();
            let changed = values.into_iter().filter(|(key, value)| given.get(key) != Some(value));
            self.change(changed.chain(removed.into_iter().map(|key| (key, Value::Null))))?;
        }
        *given = self.api.state().get()?.unwrap_or_default();
        metadata.insert(METADATA.to_owned(), given.clone().into());
        Ok(())
    }

    /// Stores values. Null removes one.
    // LEGACY-SHARED-03, LEGACY-SHARED-04
    fn change(&self, values: impl IntoIterator<Item = (String, Value)>) -> Result<()> {
        let (legal, illegal): (Vec<_>, Vec<_>) = values.into_iter().partition(|(key, _)| is_legal(key));
        for (key, _) in illegal {
            let log = self.api.logger().with("key", key);
            log.warn("a shared value was refused: its key is not the name of an extension, a dot, and a name");
        }
        if legal.is_empty() {
            return Ok(());
        }
        self.api.state().update(|state: &mut Map<String, Value>| {
            for (key, value) in legal {
                match value {
                    Value::Null => drop(state.shift_remove(&key)),
                    value => drop(state.insert(key, value)),
                }
            }
        })
    }
}

/// Returns whether a key is the name of an extension, a dot, and a name.
fn is_legal(key: &str) -> bool {
    key.split_once('.').is_some_and(|(extension, name)| ExtensionName::new(extension).is_ok() && !name.is_empty())
}
