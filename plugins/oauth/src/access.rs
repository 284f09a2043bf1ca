//! The answer to a request: a token, or the sign-in that it needs.

use std::sync::Arc;

use goondan_oauth_client::{Answer, TokenRequest, code};

use crate::failure::Failure;
use crate::kept::Granted;
use crate::sign_in::SignIns;
use crate::tokens::Tokens;

/// Access to the apps.
pub(crate) struct Access {
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) sign_ins: SignIns,
}

impl Access {
    pub(crate) fn new(tokens: Tokens) -> Self {
        Self { tokens: Arc::new(tokens), sign_ins: SignIns::default() }
    }

    /// Returns the answer to a request of another extension, in the turn of `user`.
    pub(crate) async fn answer(self: Arc<Self>, request: TokenRequest, user: Option<String>) -> Answer {
        let answer = async {
            let (app, owner) = self.tokens.find(&request.app, user)?;
            // LEGACY-OAUTH-03
            if let Some(scope) = app.lacks(&request.scopes) {
                let message = format!("the app `{}` has no scope `{scope}`", app.name);
                return Err(Failure::new(code::SCOPE_NOT_ALLOWED, message));
            }
            let Some(Granted { token, .. }) = self.tokens.granted(&app, &owner, &request).await? else {
                let authorization = self.sign_ins.begin(&self.tokens, &app, &owner).await?;
                return Ok(Answer::AuthorizationRequired { authorization });
            };
            match request.scopes.iter().find(|scope| !token.scopes.contains(scope)) {
                Some(scope) => {
                    let message = format!("the app `{}` was not allowed `{scope}`", app.name);
                    Err(Failure::new(code::SCOPE_NOT_ALLOWED, message))
                }
                None => Ok(Answer::Ready { token }),
            }
        };
        answer.await.unwrap_or_else(Failure::answer)
    }
}
