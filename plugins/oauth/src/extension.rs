//! The extension: it takes requests, and decides on whose behalf they are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use goondan::prelude::*;
use goondan_lock::Lock;
use goondan_oauth_client::{Answer, TokenRequest, allow, code};
use tokio::task::JoinSet;

use crate::access::Access;
use crate::config::{Config, Flow, Subject};
use crate::failure::Failure;
use crate::kept::{Owner, now};
use crate::server::Server;
use crate::store::{Store, Stored};
use crate::tokens::Tokens;

/// The extension.
pub struct OAuth {
    desk: Arc<Desk>,
}

/// Takes requests.
struct Desk {
    api: ExtensionApi,
    /// The conversation, and a number of the desk.
    place: (u64, u64),
    /// `None` with an empty config.
    access: Option<Arc<Access>>,
    /// The user whose turn runs.
    user: Lock<Option<String>>,
    /// Requests that are being answered.
    requests: Lock<JoinSet<()>>,
}

/// The desks of all conversations, oldest first. A conversation has two while its extension is replaced between two
/// turns: then the new one answers, because new extensions may ask for apps that only its config has.
static DESKS: Lock<Vec<(u64, u64)>> = Lock::new(Vec::new());

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

/// The answer of `oauth__authorize`.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Authorized {
    /// The person has allowed it.
    Ready { app: String, state: &'static str },
    /// A person has to open a page.
    Page { url: String, message: String, expires_in_seconds: u64 },
}

/// Gets, keeps and refreshes OAuth access tokens, which other extensions ask for.
#[goondan::extension(name = "oauth")]
impl OAuth {
    #[init]
    fn new(api: ExtensionApi, config: Config, ctx: InitContext) -> Result<Self> {
        let conversation = ctx.conversation();
        let access = match config.check()? {
            Some((apps, key)) => {
                let store = Store::new(api.clone(), ctx, key);
                Some(Arc::new(Access::new(Tokens::new(api.clone(), apps, Server::new()?, store))))
            }
            None => {
                api.logger().warn("no app is configured: write `apps` in the config of the extension");
                None
            }
        };
        let desk = Arc::new(Desk::open(api, access, conversation));
        // By hand, because what `#[on]` subscribes is called after all `#[init]`, and others ask in theirs.
        let asked = Arc::clone(&desk);
        let answer = move |event: Event| {
            let desk = Arc::clone(&asked);
            async move { desk.request(&event) }
        };
        desk.api.events().on("oauth.request", answer)?.detach();
        Ok(Self { desk })
    }

    /// Notes whose turn runs.
    // LEGACY-OAUTH-03: a request does not say on whose behalf it is.
    #[middleware(turn, priority = -900)]
    async fn note(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let principal = ctx.input().auth.as_ref().and_then(|auth| auth.principal.as_ref());
        *self.desk.user.lock() = principal.map(|user| format!("{}:{}", user.kind, user.id));
        let _turn = Turned(&self.desk);
        next.run(ctx).await
    }

    /// Lists the apps of other services that can be accessed, and whether access is allowed.
    #[tool(effect = read)]
    async fn status(&self) -> Result<Vec<AppStatus>> {
        let tokens = self.desk.access.iter().map(|access| &access.tokens);
        let apps = tokens.flat_map(|tokens| tokens.apps.keys().map(move |name| (tokens, name)));
        let user = self.desk.user.lock().clone();
        Ok(apps.filter_map(|(tokens, name)| status(tokens, name, user.clone())).collect())
    }

    /// Lets the user allow access to an app, and waits for that. If the answer has a `url`, the user was not asked:
    /// show them that and the `message`.
    // ASK-04
    #[tool(effect = idempotent, asks, timeout = "60s", present = "{app}")]
    async fn authorize(&self, input: Authorize, ctx: &ToolContext<'_>) -> Result<Authorized> {
        let no_app = || Failure::new(code::APP_NOT_FOUND, "no app is configured").error();
        let Access { tokens, sign_ins } = &**self.desk.access.as_ref().ok_or_else(no_app)?;
        let user = self.desk.user.lock().clone();
        let (app, owner) = tokens.find(&input.app, user).map_err(Failure::error)?;
        let page = sign_ins.begin(tokens, &app, &owner).await.map_err(Failure::error)?;
        if allow(ctx, &self.desk.api, &app.name, &page).await? {
            return Ok(Authorized::Ready { app: app.name.clone(), state: "ready" });
        }
        let expires_in_seconds = page.expires_at.saturating_sub(now());
        Ok(Authorized::Page { url: page.url, message: page.message, expires_in_seconds })
    }

    #[cleanup]
    async fn close(&self) {
        self.desk.close();
        // A refresh token that was spent must be replaced.
        let mut requests = std::mem::take(&mut *self.desk.requests.lock());
        while requests.join_next().await.is_some() {}
        if let Some(access) = &self.desk.access {
            access.sign_ins.end().await;
        }
    }
}

impl Desk {
    fn open(api: ExtensionApi, access: Option<Arc<Access>>, conversation: u64) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let place = (conversation, NUMBERS.fetch_add(1, Ordering::Relaxed));
        desks().push(place);
        Self { api, place, access, user: Lock::default(), requests: Lock::default() }
    }

    /// Takes no more requests.
    fn close(&self) {
        desks().retain(|place| *place != self.place);
    }

    /// Answers a request of another extension.
    fn request(&self, event: &Event) -> Result<()> {
        let newest = desks().iter().rfind(|place| place.0 == self.place.0).copied();
        if newest != Some(self.place) {
            return Ok(());
        }
        let [id, request] = event.args() else {
            return Err(Error::msg("`oauth.request` takes an id and a request; use the crate `goondan-oauth-client`"));
        };
        let answer = format!("oauth.answer.{}", id.as_str().unwrap_or_default());
        let request = TokenRequest::deserialize(request)?;
        self.api.events().emit(&answer, (Answer::Accepted,));
        let (api, access, user) = (self.api.clone(), self.access.clone(), self.user.lock().clone());
        let mut requests = self.requests.lock();
        while requests.try_join_next().is_some() {}
        // In a task of its own: it ends although who asks may not wait for it, and others do not wait for it.
        requests.spawn(async move {
            let answered = match access {
                Some(access) => access.answer(request, user).await,
                None => Failure::new(code::APP_NOT_FOUND, "no app is configured").answer(),
            };
            api.events().emit(&answer, (answered,));
        });
        Ok(())
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.close();
    }
}

fn desks() -> MutexGuard<'static, Vec<(u64, u64)>> {
    DESKS.lock()
}

/// While it lives, a turn runs.
struct Turned<'a>(&'a Desk);

impl Drop for Turned<'_> {
    fn drop(&mut self) {
        *self.0.user.lock() = None;
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
        Stored::Found(granted) => {
            let left = granted.token.expires_at.map(|expires_at| expires_at.saturating_sub(now()));
            ("ready".to_owned(), left)
        }
        _ if app.flow() == Flow::ClientCredentials => ("ready".to_owned(), None),
        _ => ("signInNeeded".to_owned(), None),
    })
}
