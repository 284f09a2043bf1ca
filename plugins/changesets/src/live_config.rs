//! Changes of the bundle that an agent proposes and a person commits.
// LEGACY-LIVECONFIG

use goondan::prelude::*;
use serde::Serialize;

use crate::changeset::Changesets;
use crate::commit::{Problem, Summary, reference, summary};
use crate::config::Config;
use crate::shown;

/// The extension `live-config`.
#[derive(Debug)]
pub struct LiveConfigExtension {
    api: ExtensionApi,
    /// `None` when nothing should be run.
    changesets: Option<Changesets>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ProposeInput {
    /// The change as a unified diff with lines of context, as `git diff` prints it. Paths begin at the top of the
    /// repository.
    patch: String,
    /// Why it should be made. A person decides by it.
    reason: String,
}

/// The answer of `live-config__propose`, and the payload of `changeset.proposed`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Proposed {
    /// `proposed` or `rejected`.
    status: &'static str,
    /// The name of the proposal for persons.
    #[serde(skip_serializing_if = "Option::is_none")]
    changeset_id: Option<String>,
    base_ref: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Problem>,
}

/// Changes of the agent's own bundle, which a person commits.
#[goondan::extension(name = "live-config")]
impl LiveConfigExtension {
    #[init]
    async fn new(api: ExtensionApi, config: Config, ctx: InitContext) -> Result<Self> {
        let changesets = Changesets::of(&api, &ctx, config).await?;
        Ok(Self { api, changesets })
    }

    /// Proposes a change of the files that you are made of. Nothing changes before a person has read and committed it.
    #[tool(name = "live-config__propose", effect = once, timeout = "1h", present = shown::proposal)]
    async fn propose(&self, input: ProposeInput) -> Result<Proposed> {
        let changesets = Changesets::to_run(self.changesets.as_ref())?;
        let (changeset, head) = changesets.open(Some(input.reason)).await?;
        let outcome = async {
            let tree = changeset.apply(&head, &input.patch).await?;
            let changes = changeset.objects.changes(&head, &tree).await?;
            Ok::<_, Error>(changesets.check(&changeset, &tree, &changes).await.map(|()| summary(&changes)))
        };
        let mut answer =
            Proposed { status: "proposed", changeset_id: None, base_ref: reference(&head), summary: None, error: None };
        match outcome.await {
            Ok(Ok(summary)) => {
                (answer.changeset_id, answer.summary) = (Some(changeset.id), Some(summary));
                self.api.events().emit("changeset.proposed", (answer.clone(),));
                return Ok(answer);
            }
            Ok(Err((_, problem))) => (answer.status, answer.error) = ("rejected", Some(problem)),
            Err(error) => {
                changesets.discard(&changeset).await?;
                return Err(error.suggest("make the diff from the files as they are now"));
            }
        }
        changesets.discard(&changeset).await?;
        Ok(answer)
    }
}
