//! Tools whose handlers ask.

use goondan::decision::Question;
use goondan::prelude::*;
use goondan::tool::ToolReply;
use goondan::{Secret, Value};

use crate::Log;

/// Tools that ask before they act, and log each run of their handlers.
pub struct ToolsAsk {
    log: Log,
    api: ExtensionApi,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Config {
    log: Log,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct How {
    /// What the handler asks.
    how: String,
}

/// Where a parcel goes.
#[derive(Debug, Deserialize, JsonSchema)]
struct Address {
    street: String,
    number: u32,
}

#[goondan::extension(name = "tools-ask")]
impl ToolsAsk {
    #[init]
    fn new(config: Config, api: ExtensionApi) -> Self {
        Self { log: config.log, api }
    }

    /// Sends a parcel.
    #[tool(asks, present = "sends it, {how}")]
    async fn send(&self, input: How, ctx: &ToolContext<'_>) -> Result<ToolReply> {
        self.log.write("runs");
        // What a handler does before it asks happens again.
        self.api.state().update(|runs: &mut u32| *runs += 1)?;
        let carrier = || Question::choose("Which carrier?", ["Post", "Express"]);
        let sent = match input.how.as_str() {
            "carrier" => match ctx.decision::<String>()? {
                Some(carrier) => carrier,
                None => return Ok(ToolReply::ask(carrier())),
            },
            "both" => {
                let Some(carrier) = ctx.decision_of::<String>("carrier")? else {
                    return Ok(ToolReply::ask(carrier().named("carrier")));
                };
                let Some(address) = ctx.decision_of::<Address>("address")? else {
                    return Ok(ToolReply::ask(Question::new("Where to?").expecting::<Address>().named("address")));
                };
                format!("{carrier} to {} {}", address.street, address.number)
            }
            "secret" => match ctx.decision::<Secret>()? {
                Some(code) => format!("{} characters", code.expose().len()),
                None => return Ok(ToolReply::ask(Question::for_secret("The code?"))),
            },
            "secret first" => {
                let Some(code) = ctx.decision_of::<Secret>("code")? else {
                    return Ok(ToolReply::ask(Question::for_secret("The code?").named("code")));
                };
                match ctx.decision_of::<Value>("sure")? {
                    Some(_) => format!("{} characters", code.expose().len()),
                    None => return Ok(ToolReply::ask(Question::new("Sure?").named("sure"))),
                }
            }
            "again" => return Ok(ToolReply::ask(carrier())),
            "without end" => return Ok(ToolReply::ask(Question::new(format!("{:?}", ctx.decision::<u32>()?)))),
            _ => return Ok(ToolReply::ask(Question::new("?").expecting_schema(7.into()))),
        };
        self.log.write(format!("sent {sent}"));
        Ok(ToolReply::text(sent))
    }

    /// Asks, and its declaration does not say so.
    #[tool]
    async fn secretly(&self) -> Result<ToolReply> {
        Ok(ToolReply::ask(Question::new("May I?")))
    }
}
