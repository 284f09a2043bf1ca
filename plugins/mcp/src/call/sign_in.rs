//! The tool by which the person signs in to a server that has no tools before that.
// ASK-04

use goondan::extension::ExtensionApi;
use goondan::tool::{ToolContext, ToolHandler, ToolReply};
use goondan::{BoxFuture, Result, Value};
use goondan_oauth_client::get_access_token_in_call;

use super::ConfiguredServer;
use crate::config::Auth;

/// Lets the person sign in, and starts the server.
pub(crate) struct SignIn {
    pub(crate) server: ConfiguredServer,
    pub(crate) api: ExtensionApi,
    pub(crate) auth: Auth,
}

impl SignIn {
    pub(crate) const DESCRIPTION: &str =
        "Lets the user sign in to this server, which has no other tools before that. Call it when you need the server.";
}

impl ToolHandler for SignIn {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move {
            get_access_token_in_call(ctx, &self.api, &self.auth.request()).await?;
            self.server.connection.start(&self.server.config.limits).await?;
            Ok(ToolReply::text("the user has signed in: your next answer can call the tools of the server"))
        })
    }
}
