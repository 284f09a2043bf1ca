//! The client as servers see it: its name, its capabilities, and the person who answers.
// ASK-04

use super::elicited;
use super::protocol::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorData,
    FormElicitationCapability, Implementation, ProtocolVersion, UrlElicitationCapability,
};
use super::protocol::service::RequestContext;
use super::protocol::{self, RoleClient};
use super::running::{Response, RunningCalls};

/// Lets the person answer the questions of a server while a call runs. It has no other capability: a server that
/// wants to ask the model of the agent gets no answer.
pub(super) struct Asker {
    /// The version that a handshake proposes.
    pub(super) version: ProtocolVersion,
    pub(super) calls: RunningCalls,
}

impl protocol::ClientHandler for Asker {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("goondan", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::new());
        capabilities.elicitation = Some(elicitation.with_url(UrlElicitationCapability::new()));
        ClientConfig::new(capabilities, name).with_protocol_version(self.version.clone())
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = elicited::elicitation(params).and_then(|elicitation| self.calls.ask(elicitation));
        let Some(answered) = asked else { return Ok(elicited::result(Response::Cancel)) };
        // The server may take its question back.
        let response = tokio::select! {
            response = answered => response.unwrap_or(Response::Cancel),
            () = context.ct.cancelled() => Response::Cancel,
        };
        Ok(elicited::result(response))
    }
}
