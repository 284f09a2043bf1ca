//! The page or the code by which a person allows an access.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use goondan::Secret;
use goondan_oauth_client::{Authorization, code};
use reqwest::Url;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::app::{App, Client, Grant};
use crate::callback::Callback;
use crate::failure::Failure;
use crate::kept::{Owner, now};
use crate::registration::Page;
use crate::seal::{random_text, sha256};
use crate::server::{DeviceCode, Refusal};
use crate::tokens::Tokens;

/// The longest time that a page can be used.
pub(crate) const LIMIT: Duration = Duration::from_secs(5 * 60);

/// The sign-ins that are under way, one for an app and an owner.
#[derive(Default)]
pub(crate) struct SignIns(Mutex<BTreeMap<(String, Owner), SignIn>>);

struct SignIn {
    authorization: Authorization,
    /// Whether the person was answered, so that the page cannot be used again.
    over: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Drop for SignIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SignIns {
    /// Begins a sign-in, or returns the one that is under way.
    pub(crate) async fn begin(
        &self,
        tokens: &Arc<Tokens>,
        app: &Arc<App>,
        owner: &Owner,
    ) -> Result<Authorization, Failure> {
        let mut sign_ins = self.0.lock().await;
        let key = (app.name.clone(), owner.clone());
        match sign_ins.get(&key) {
            Some(SignIn { authorization, over, task }) if !task.is_finished() && !over.load(Ordering::Acquire) => {
                return Ok(authorization.clone());
            }
            _ => {}
        }
        // Its listener may have the port.
        sign_ins.remove(&key);
        let sign_in = match &app.grant {
            Grant::AuthorizationCode { authorize_url: url, client, port } => {
                let (url, client, scopes) = (url.clone(), client.clone(), app.scopes.clone());
                let callback = tokens.listen(app, *port).await?;
                tokens.by_page(app, owner, callback, Page { url, client, scopes, issuer: None })?
            }
            Grant::Announced { resource, own, port } => {
                let (callback, page) = tokens.announced_page(app, owner, resource, own.as_ref(), *port).await?;
                tokens.by_page(app, owner, callback, page)?
            }
            Grant::DeviceCode { device_url, client } => tokens.by_code(app, owner, device_url, client).await?,
            Grant::ClientCredentials { .. } => {
                let message = format!("the app `{}` acts for itself, without a sign-in", app.name);
                return Err(Failure::new(code::CONFIGURATION_ERROR, message));
            }
        };
        let authorization = sign_in.authorization.clone();
        sign_ins.insert(key, sign_in);
        Ok(authorization)
    }

    /// Ends all, and closes their listeners.
    pub(crate) async fn end(&self) {
        for mut sign_in in std::mem::take(&mut *self.0.lock().await).into_values() {
            sign_in.task.abort();
            // It was cancelled, or had ended.
            let _ = (&mut sign_in.task).await;
        }
    }
}

impl Tokens {
    /// Begins a sign-in on a page. RFC 6749, 4.1; RFC 7636; RFC 8252.
    fn by_page(
        self: &Arc<Self>,
        app: &Arc<App>,
        owner: &Owner,
        callback: Callback,
        page: Page,
    ) -> Result<SignIn, Failure> {
        let (state, verifier, session) = (random_text()?, Secret::new(random_text()?), random_text()?);
        let redirect = callback.url().to_owned();
        let url = page_url(&page, &redirect, &state, &sha256(verifier.expose()));
        let (start, host, minutes) = (callback.start(), url.host_str().unwrap_or_default(), LIMIT.as_secs() / 60);
        let message =
            format!("open {start} in a browser on this machine, within {minutes} minutes; it leads to {host}");
        let expires_at = now() + LIMIT.as_secs();
        let authorization = Authorization { session, url: start, expires_at, message };

        let over = Arc::<AtomicBool>::default();
        let (tokens, app, owner, answered) = (Arc::clone(self), Arc::clone(app), owner.clone(), Arc::clone(&over));
        let task = tokio::spawn(async move {
            let Some(visit) = callback.visit(&url, &state, LIMIT).await else {
                // The page may say that it does not know the app any more.
                if let Err(failure) = tokens.forget_registration(&app, &owner).await {
                    tokens.log(&app, &failure.message);
                }
                return tokens.log(&app, "the person did not come back from the page in time");
            };
            let outcome = match &visit.outcome {
                _ if page.issuer.as_ref().is_some_and(|issuer| !issuer.answers(visit.issuer.as_deref())) => {
                    let message = "the answer is not that of its authorization server";
                    Err(Failure::new(code::CONFIGURATION_ERROR, message))
                }
                Ok(code) => {
                    let form = [
                        ("grant_type", "authorization_code"),
                        ("code", code.expose()),
                        ("redirect_uri", &redirect),
                        ("code_verifier", verifier.expose()),
                    ];
                    tokens.redeem(&app, &owner, &page, &form).await
                }
                Err(error) => Err(Failure::new(code::REFRESH_FAILED, format!("the answer was `{error}`"))),
            };
            answered.store(true, Ordering::Release);
            match outcome {
                Ok(()) => visit.show("The access is allowed. You can close this page.").await,
                Err(failure) => {
                    tokens.log(&app, &failure.message);
                    visit.show("The access is not allowed. You can close this page.").await;
                }
            }
        });
        Ok(SignIn { authorization, over, task })
    }

    /// Begins a sign-in by a code. RFC 8628.
    async fn by_code(
        self: &Arc<Self>,
        app: &Arc<App>,
        owner: &Owner,
        url: &Url,
        client: &Client,
    ) -> Result<SignIn, Failure> {
        let code =
            self.server.device_code(client, url, &app.scopes.join(" ")).await.map_err(|refusal| match refusal {
                Refusal::Unreachable { .. } => refusal.failure(app),
                _ => Failure { code: code::DEVICE_CODE_UNSUPPORTED, ..refusal.failure(app) },
            })?;
        let DeviceCode { device_code, user_code, verification_uri, verification_uri_complete, expires_in, interval } =
            code;
        let message = format!("open {verification_uri} and enter the code {user_code}");
        let url = verification_uri_complete.unwrap_or(verification_uri);
        let authorization = Authorization { session: random_text()?, url, expires_at: now() + expires_in, message };

        let (tokens, app, owner, client) = (Arc::clone(self), Arc::clone(app), owner.clone(), client.clone());
        let task = tokio::spawn(async move {
            let form =
                [("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", device_code.expose())];
            let mut interval = Duration::from_secs(interval.max(1));
            let allowed = async {
                loop {
                    sleep(interval).await;
                    match tokens.server.token(&client, &app.scopes, &form, None).await {
                        Err(refusal) if refusal.is("slow_down") => interval += Duration::from_secs(5),
                        Err(Refusal::Unreachable { .. } | Refusal::Unclear { .. }) => {}
                        Err(refusal) if refusal.is("authorization_pending") => {}
                        outcome => return outcome,
                    }
                }
            };
            let outcome = match timeout(Duration::from_secs(expires_in), allowed).await {
                Ok(Ok(granted)) => tokens.keep(&app, &owner, &granted).await,
                Ok(Err(refusal)) => Err(refusal.failure(&app)),
                Err(_) => return tokens.log(&app, "the code was not entered in time"),
            };
            if let Err(failure) = outcome {
                tokens.log(&app, &failure.message);
            }
        });
        Ok(SignIn { authorization, over: Arc::default(), task })
    }

    /// Exchanges the code of a sign-in for a token, and keeps it.
    async fn redeem(&self, app: &App, owner: &Owner, page: &Page, form: &[(&str, &str)]) -> Result<(), Failure> {
        let mut granted = match self.server.token(&page.client, &page.scopes, form, None).await {
            Ok(granted) => granted,
            Err(refusal) => {
                if refusal.is("invalid_client") {
                    self.forget_registration(app, owner).await?;
                }
                return Err(refusal.failure(app));
            }
        };
        granted.issued_to = page.issuer.is_some().then(|| page.client.clone());
        self.keep(app, owner, &granted).await
    }

    fn log(&self, app: &App, problem: &str) {
        self.api.logger().warn(format!("the sign-in to `{}` ended without access: {problem}", app.name));
    }
}

/// Returns the URL of a page, with the values that the answer will be compared with.
fn page_url(page: &Page, redirect: &str, state: &str, challenge: &str) -> Url {
    let mut url = page.url.clone();
    url.query_pairs_mut().extend_pairs([
        ("response_type", "code"),
        ("client_id", &*page.client.id),
        ("redirect_uri", redirect),
        ("state", state),
        ("code_challenge", challenge),
        ("code_challenge_method", "S256"),
    ]);
    if !page.scopes.is_empty() {
        url.query_pairs_mut().append_pair("scope", &page.scopes.join(" "));
    }
    if let Some(resource) = &page.client.resource {
        url.query_pairs_mut().append_pair("resource", resource);
    }
    url
}
