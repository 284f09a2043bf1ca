//! Tools whose calls run beside others.

use std::task::Poll;

use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Works for a while in each of its tools, and logs when it begins and ends.
pub struct Beside {
    log: Log,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Order {
    number: u32,
}

impl Beside {
    async fn work(&self, what: &str, Order { number }: Order) -> Result<String> {
        self.log.write(format!("{what} {number} begins"));
        let mut left = 5;
        std::future::poll_fn(|cx| {
            left -= 1;
            cx.waker().wake_by_ref();
            if left == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.log.write(format!("{what} {number} ends"));
        Ok(format!("{what} {number}"))
    }
}

#[goondan::extension(name = "beside")]
impl Beside {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    /// Pays an order.
    #[tool(effect = once, parallel)]
    async fn pay(&self, order: Order) -> Result<String> {
        self.work("pay", order).await
    }

    /// Ships an order.
    #[tool(effect = idempotent, parallel)]
    async fn ship(&self, order: Order) -> Result<String> {
        self.work("ship", order).await
    }

    /// Reads an order.
    #[tool(effect = read)]
    async fn read(&self, order: Order) -> Result<String> {
        self.work("read", order).await
    }

    /// Closes an order, alone.
    #[tool(effect = once)]
    async fn close(&self, order: Order) -> Result<String> {
        self.work("close", order).await
    }

    /// Asks before it pays.
    #[tool(effect = once, asks, parallel)]
    async fn ask(&self, order: Order, ctx: &ToolContext<'_>) -> Result<ToolReply> {
        match ctx.decision::<bool>()? {
            Some(_) => Ok(self.work("ask", order).await?.into()),
            None => Ok(ToolReply::ask(goondan::decision::Question::new("Really?"))),
        }
    }
}
