//! An extension that shows things to the person.

use std::time::Duration;

use goondan::event::{ItemState, Shown, ShownItem};
use goondan::prelude::*;

/// Shows what it is asked for.
pub struct Showing {
    api: ExtensionApi,
}

/// What a flood consists of.
#[derive(Deserialize)]
struct Flood {
    /// The number of notes.
    notes: usize,
    /// How long each is besides its number.
    bytes: usize,
    /// How often the list changes between them.
    lists: usize,
}

fn list(done: usize) -> Shown {
    let state = |at| if at < done { ItemState::Done } else { ItemState::Active };
    Shown::list("Work", (0..2).map(|at| ShownItem::new(state(at), format!("part {at}")))).with_id("work")
}

#[goondan::extension(name = "showing")]
impl Showing {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    /// Shows one of each.
    #[tool]
    async fn all(&self, ctx: &ToolContext<'_>) -> Result<String> {
        let events = self.api.events();
        events.show(Shown::note(format!("in step of {}\x1b[2J", ctx.tool_name())));
        events.show(Shown::status("half\nway"));
        events.show(list(1));
        events.show(list(2));
        events.show(Shown::difference("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"));
        Ok("shown".to_owned())
    }

    /// Shows much at once, in a task of its own, and says that it has.
    #[on("show.flood")]
    async fn flood(&self, event: &Event) -> Result<()> {
        let (api, Flood { notes, bytes, lists }) = (self.api.clone(), event.payload()?);
        tokio::spawn(async move {
            for number in 0..notes {
                api.events().show(Shown::note(format!("{number} {}", "\x07".repeat(bytes))));
                if lists > 0 && number % (notes / lists) == 0 {
                    api.events().show(list(0));
                }
                if number % 1_000 == 0 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            api.events().show(list(2));
            api.events().emit("show.done", ());
        });
        Ok(())
    }

    /// Shows something whenever something is shown.
    #[on("extension.shown")]
    async fn echo(&self, event: &Event) -> Result<()> {
        if event.args()[0]["shown"]["text"] == "echo" {
            self.api.events().show(Shown::note("echo"));
        }
        Ok(())
    }

    #[on("show.echo")]
    async fn begin_echo(&self) -> Result<()> {
        self.api.events().show(Shown::note("echo"));
        Ok(())
    }
}
