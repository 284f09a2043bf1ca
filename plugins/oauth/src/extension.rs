//! The extension: it takes requests, and decides on whose behalf they are.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goondan::prelude::*;
use goondan_oauth_client::{Answer, TokenRequest, code};
use tokio::task::JoinSet;

use crate::config::{Config, Flow, Subject};
use crate::failure::Failure;
use crate::server::{Server, now};
use crate::store::{Owner, Store, Stored};
use crate::tokens::Tokens;

/// The extension.
pub struct OAuth {
    api: ExtensionApi,
    /// `None` with an empty config.
    tokens: Option<Arc<Tokens>>,
    /// The user whose turn runs.
    user: Mutex<Option<String>>,
    /// Requests that are being answered.
    requests: Mutex<JoinSet<()>>,
}

/// An app, for the model.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AppStatus {
    app: String,
    flow: Flow,
    subject: Subject,
    scopes: Vec<String>,
    /// `ready`, `signInNeeded`, or why it is unknown.
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_in_seconds: Option<u64>,
}

/// The input of `oauth__authorize`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Authorize {
    /// The name of the app, of those that `oauth__status` lists.
    app: String,
}

/// How a person allows an access, for the model.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    url: String,
    message: String,
    expires_in_seconds: u64,
}

/// Gets, keeps and refreshes OAuth access tokens, which other extensions ask for.
#[goondan::extension(name = "oauth")]
impl OAuth {
    #[init]
    fn new(api: ExtensionApi, config: Config, ctx: InitContext) -> Result<Self> {
        let tokens = match config.check()? {
            Some((apps, key)) => {
                let store = Store::new(api.clone(), ctx, key);
                Some(Arc::new(Tokens::new(api.clone(), apps, Server::new()?, store)))
            }
            None => {
                api.logger().warn("no app is configured: write `apps` in the config of the extension");
                None
            }
        };
        Ok(Self { api, tokens, user: Mutex::default(), requests: Mutex::default() })
    }

    /// Notes whose turn runs.
    // LEGACY-OAUTH-03: nobody who asks says on whose behalf.
    #[middleware(turn, priority = -900)]
    async fn note(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let principal = ctx.input().auth.as_ref().and_then(|auth| auth.principal.as_ref());
        *self.user() = principal.map(|user| format!("{}:{}", user.kind, user.id));
        let _turn = Turned(self);
        next.run(ctx).await
    }

    /// Answers a request of another extension.
    #[on("oauth.request")]
    async fn request(&self, event: &Event) -> Result<()> {
        let [id, request] = event.args() else {
            return Err(Error::msg("`oauth.request` takes an id and a request; use the crate `goondan-oauth-client`"));
        };
        let answer = format!("oauth.answer.{}", id.as_str().unwrap_or_default());
        let request = TokenRequest::deserialize(request)?;
        self.api.events().emit(&answer, (Answer::Accepted,));
        let (api, tokens, user) = (self.api.clone(), self.tokens.clone(), self.user().clone());
        let mut requests = self.requests();
        while requests.try_join_next().is_some() {}
        // In a task of its own: it ends although who asks may not wait for it, and others do not wait for it.
        requests.spawn(async move {
            let answered = match tokens {
                Some(tokens) => tokens.answer(request, user).await,
                None => Failure::new(code::APP_NOT_FOUND, "no app is configured").answer(),
            };
            api.events().emit(&answer, (answered,));
        });
        Ok(())
    }

    /// Lists the apps of other services that can be accessed, and whether access is allowed.
    #[tool(effect = read)]
    async fn status(&self) -> Result<Vec<AppStatus>> {
        let apps = self.tokens.iter().flat_map(|tokens| tokens.apps.keys().map(move |name| (tokens, name)));
        let user = self.user().clone();
        Ok(apps.filter_map(|(tokens, name)| status(tokens, name, user.clone())).collect())
    }

    /// Begins to ask the user for access to an app. Show the user the `url` and the `message` of the answer.
    #[tool]
    async fn authorize(&self, input: Authorize) -> Result<Page> {
        let no_app = || Failure::new(code::APP_NOT_FOUND, "no app is configured").error();
        let tokens = self.tokens.as_ref().ok_or_else(no_app)?;
        let user = self.user().clone();
        let (app, owner) = tokens.find(&input.app, user).map_err(Failure::error)?;
        let page = tokens.sign_in(&app, &owner).await.map_err(Failure::error)?;
        let expires_in_seconds = page.expires_at.saturating_sub(now());
        Ok(Page { url: page.url, message: page.message, expires_in_seconds })
    }

    #[cleanup]
    async fn close(&self) {
        // A refresh token that was spent must be replaced.
        let mut requests = std::mem::take(&mut *self.requests());
        while requests.join_next().await.is_some() {}
        if let Some(tokens) = &self.tokens {
            tokens.sign_ins.end().await;
        }
    }
}

impl OAuth {
    fn user(&self) -> MutexGuard<'_, Option<String>> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While it lives, a turn runs.
struct Turned<'a>(&'a OAuth);

impl Drop for Turned<'_> {
    fn drop(&mut self) {
        *self.0.user() = None;
    }
}

fn status(tokens: &Tokens, name: &str, user: Option<String>) -> Option<AppStatus> {
    let app = tokens.apps.get(name)?;
    let (state, expires_in_seconds) = match tokens.find(name, user).and_then(|(app, owner)| load(tokens, &app, &owner))
    {
        Ok(state) => state,
        Err(failure) => (failure.message, None),
    };
    let (flow, subject, scopes) = (app.flow(), app.subject, app.scopes.clone());
    Some(AppStatus { app: app.name.clone(), flow, subject, scopes, state, expires_in_seconds })
}

fn load(tokens: &Tokens, app: &crate::app::App, owner: &Owner) -> Result<(String, Option<u64>), Failure> {
    Ok(match tokens.store.load(app, owner)? {
        Stored::Granted(granted) => {
            let left = granted.token.expires_at.map(|expires_at| expires_at.saturating_sub(now()));
            ("ready".to_owned(), left)
        }
        _ if app.flow() == Flow::ClientCredentials => ("ready".to_owned(), None),
        _ => ("signInNeeded".to_owned(), None),
    })
}
