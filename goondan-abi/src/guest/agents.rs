//! Requests from a library to other agents and to models.

use std::ffi::c_void;

use goondan_core::linkage::{WireAgentRequest, WireAgentResponse};
use goondan_core::{
    AgentName, AgentRequest, AgentResponse, AgentsHost, BoxFuture, ExtensionName, RequestTicket, Result,
};

use super::call::CallRef;
use super::{host, missing};
use crate::bytes::{OwnedBuffer, ask};
use crate::future::{Imported, NoScope};
use crate::table::{Future, Text};

type Start = unsafe extern "C" fn(*const c_void, Text) -> Future;

async fn send(call: CallRef, start: Start, request: AgentRequest) -> Result<OwnedBuffer> {
    let future = {
        let request = serde_json::to_vec(&WireAgentRequest::from(request))?;
        // SAFETY: By the contract of `CallRef::new`, the call outlives this future; the text is borrowed for this
        // function.
        unsafe { start(call.raw(), Text::new(&request)) }
    };
    // SAFETY: The host just returned the future, which has no other owner.
    unsafe { Imported::new(future, NoScope) }.await
}

impl AgentsHost for CallRef {
    fn request<'a>(
        &'a self,
        request: AgentRequest,
        // The host knows it too.
        _: Option<&'a ExtensionName>,
    ) -> BoxFuture<'a, Result<AgentResponse>> {
        let call = *self;
        Box::pin(async move {
            let answer = send(call, host().run_request, request).await?;
            answer.parse::<WireAgentResponse>()?.try_into()
        })
    }

    fn request_later(&self, request: AgentRequest) -> Result<RequestTicket> {
        let request = serde_json::to_vec(&WireAgentRequest::from(request))?;
        let request = Text::new(&request);
        // SAFETY: By the contract of `CallRef::new`, the call is valid; the text is borrowed for this function.
        let ticket = ask(|output| unsafe { (host().run_request_later)(self.raw(), request, output) })?;
        Ok(RequestTicket { correlation_id: ticket.ok_or_else(|| missing("ticket"))?.text() })
    }

    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<bool>> {
        let call = *self;
        Box::pin(async move { send(call, host().run_send, request).await?.parse() })
    }

    fn list(&self) -> Vec<AgentName> {
        // SAFETY: By the contract of `CallRef::new`, the call is valid.
        let list = ask(|output| unsafe { (host().run_agents)(self.raw(), output) });
        let list = list.and_then(|list| list.ok_or_else(|| missing("agents"))?.parse());
        list.unwrap_or_else(|error| {
            tracing::error!("the agents are not known: {error}");
            Vec::new()
        })
    }
}
