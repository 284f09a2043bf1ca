//! Owns the way to other agents from inside a library.

use std::ffi::c_void;

use goondan_core::linkage::{WireAgentRequest, WireAgentResponse};
use goondan_core::{AgentName, AgentRequest, AgentResponse, AgentsHost, BoxFuture, Result, Ticket};

use super::extension::broken;
use super::host;
use super::run::Link;
use crate::bytes::{Owned, ask};
use crate::future::{Imported, Nothing};
use crate::table::{Future, Text};

type Start = unsafe extern "C" fn(*const c_void, Text) -> Future;

async fn asked(link: Link, start: Start, request: AgentRequest) -> Result<Owned> {
    let future = {
        let request = serde_json::to_vec(&WireAgentRequest::from(request))?;
        // SAFETY: The call lives longer than this future; the text is borrowed for this function.
        unsafe { start(link.raw(), Text::new(&request)) }
    };
    // SAFETY: The future is new and ours.
    unsafe { Imported::new(future, Nothing) }.await
}

impl AgentsHost for Link {
    fn request(&self, request: AgentRequest) -> BoxFuture<'_, Result<AgentResponse>> {
        let link = *self;
        Box::pin(async move {
            let answer = asked(link, host().run_request, request).await?;
            Ok(answer.parse::<WireAgentResponse>()?.into())
        })
    }

    fn request_later(&self, request: AgentRequest) -> Result<Ticket> {
        let request = serde_json::to_vec(&WireAgentRequest::from(request))?;
        let request = Text::new(&request);
        // SAFETY: The call lives; the text is borrowed for this function.
        let ticket = ask(|output| unsafe { (host().run_request_later)(self.raw(), request, output) })?;
        Ok(Ticket { correlation_id: ticket.ok_or_else(|| broken("ticket"))?.text() })
    }

    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<bool>> {
        let link = *self;
        Box::pin(async move { asked(link, host().run_send, request).await?.parse() })
    }

    fn list(&self) -> Vec<AgentName> {
        // SAFETY: The call lives.
        let list = ask(|output| unsafe { (host().run_agents)(self.raw(), output) });
        let list = list.and_then(|list| list.ok_or_else(|| broken("agents"))?.parse());
        list.unwrap_or_else(|error| {
            tracing::error!("the agents are not known: {error}");
            Vec::new()
        })
    }
}
