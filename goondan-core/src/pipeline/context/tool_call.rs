//! The context of tool-call middlewares.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::host::ToolCallHost;
use super::shared_members;
use crate::decision::{Decision, decided};
use crate::depth::check;
use crate::error::Result;
use crate::name::{AgentName, ExtensionName, InstanceKey, TraceId, TurnId};
use crate::pipeline::Frame;
use crate::question::Question;
use crate::shown::Shown;
use crate::tool::ToolItem;

/// The context of a tool-call middleware: one call that the model asked for.
///
/// A function under `#[middleware(toolCall)]` takes it as `&mut ToolCallContext<'_>`. Before `next`, the middleware can
/// change the arguments, or refuse the call by returning an error, which the model reads. It can reach neither the
/// messages nor other agents.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct Sandbox;
/// # #[goondan::extension(name = "sandbox")]
/// # impl Sandbox {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// /// Makes every command of the tool `shell__run` a dry run.
/// #[middleware(toolCall)]
/// async fn dry_run(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
///     if ctx.tool_name() == "shell__run" {
///         ctx.args_mut().insert("dryRun".to_owned(), true.into());
///     }
///     next.run(ctx).await
/// }
/// # }
/// ```
// CTX-03, AGENTS-02
pub struct ToolCallContext<'a> {
    pub(crate) host: &'a mut dyn ToolCallHost,
    pub(crate) frame: Frame<'a>,
}

impl ToolCallContext<'_> {
    shared_members!();

    /// Returns the tool that is called, as this step offers it: with its effect, and with the extension or server that
    /// it comes from. `None` if the step does not offer it; such a call fails in the core.
    pub fn tool(&self) -> Option<&ToolItem> {
        self.host.tool()
    }

    /// Returns the working directory of the instance, the default for tools that read and write files. It is created on
    /// first use.
    ///
    /// # Errors
    /// `E_STORE_IO` when it cannot be created.
    pub fn workdir(&self) -> Result<&Path> {
        self.host.workdir()
    }

    /// Lets the call wait until a person, or a program, has decided about a question. Call it before `next`.
    ///
    /// `next` runs all inner layers as ever, and checks that the step offers the tool and that the arguments fit.
    /// Then the call is not run: its result [waits](crate::ToolCallResult::is_waiting), and the turn is suspended, on
    /// the disk, for as long as it takes. `Instance::decide` goes on with it. The model is not asked again, and the
    /// layers run again: now [`ToolCallContext::decision`] returns the decision.
    ///
    /// A call that was rejected does not run, whatever its layers do. The approved call runs: if other arguments arrive
    /// at the tool than those that the person has seen, it is asked once more, and then rejected. A failure of a
    /// layer of an extension that has asked fails the call, also if its failures are skipped (`onError: skip`).
    ///
    /// ```
    /// use goondan::decision::Question;
    /// use goondan::prelude::*;
    ///
    /// # struct Careful;
    /// # #[goondan::extension(name = "careful")]
    /// # impl Careful {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Asks before money is paid back.
    /// #[middleware(toolCall)]
    /// async fn ask(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
    ///     if ctx.tool_name() == "shop__refund" && ctx.decision::<bool>()?.is_none() {
    ///         ctx.ask(Question::new("Pay the money back?").expecting::<bool>());
    ///     }
    ///     next.run(ctx).await
    /// }
    /// # }
    /// ```
    ///
    /// After `next`, and about a question that is decided, it changes nothing.
    // ASK-01, ASK-03
    pub fn ask(&mut self, question: Question) {
        let schema = question.schema.as_ref().map_or(Ok(()), check);
        match schema {
            Ok(()) => self.host.ask(question, self.frame.running()),
            Err(error) => self.host.refuse(self.frame.blame(error.refuse("the schema of a question"))),
        }
    }

    /// Returns whether a layer around this one has asked about the call, now or before the call waited. Then a person
    /// will read the lines of [`ToolCallContext::show`].
    // ASK-03
    pub fn is_asked(&self) -> bool {
        self.host.is_asked()
    }

    /// Shows more about the call to those who decide about it, such as the difference of the file that it would
    /// write. It changes nothing if no layer around this one [has asked](ToolCallContext::is_asked).
    ///
    /// It is a part of the approval: if a layer shows something else when the call goes on, the call is asked about
    /// again. Secrets in it are masked, and it is shortened as by [`EventsApi::show`](crate::EventsApi::show); of
    /// more than 8, the first ones are shown.
    ///
    /// ```
    /// use goondan::event::Shown;
    /// use goondan::prelude::*;
    ///
    /// # struct Shop;
    /// # #[goondan::extension(name = "shop")]
    /// # impl Shop {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// #     async fn balance(&self) -> Result<String> {
    /// #         Ok("49.00 EUR".to_owned())
    /// #     }
    /// #
    /// /// Shows the balance to the person who is asked about a refund.
    /// #[middleware(toolCall, priority = 1200)]
    /// async fn preview(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
    ///     if ctx.tool_name() == "shop__refund" && ctx.is_asked() {
    ///         ctx.show(Shown::note(format!("The balance is {}.", self.balance().await?)));
    ///     }
    ///     next.run(ctx).await
    /// }
    /// # }
    /// ```
    // ASK-03
    pub fn show(&mut self, shown: Shown) {
        self.host.show(shown);
    }

    /// Returns the value that was decided about the question of this function, `None` before that. The function asks
    /// for it also when the call goes on: an approved call whose asker did not read its decision is rejected.
    ///
    /// # Errors
    /// `E_TOOL_REJECTED` when it was decided that the call does not run: `?` returns it, and the model reads it.
    /// `E_DECISION_INVALID` when the value is no `T`.
    // ASK-01
    pub fn decision<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        decided(self.decisions()?, None)
    }

    /// Returns the value that was decided about the question with this [name](Question::named), as
    /// [`ToolCallContext::decision`] does.
    ///
    /// # Errors
    /// As there.
    pub fn decision_of<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        decided(self.decisions()?, Some(name))
    }

    /// Returns the decisions about the questions of this function, for a linkage.
    ///
    /// # Errors
    /// When a host of an older version does not know.
    #[doc(hidden)]
    pub fn decisions(&self) -> Result<Vec<Decision>> {
        self.host.decisions(self.frame.running())
    }

    /// Returns how many bytes the files that hold whole outputs may have together: `policy.maxOutputBytes`. They are
    /// the numbered files in the working directory that [`NumberedFile`](goondan_text::NumberedFile) of the crate
    /// `goondan-text` makes.
    pub fn max_output_bytes(&self) -> u64 {
        self.host.max_output()
    }
}
