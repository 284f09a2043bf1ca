//! The token for a request: a stored one, one that is refreshed, or none until a person signs in.

use std::collections::BTreeMap;
use std::sync::Arc;

use goondan::event::AuthGranted;
use goondan::extension::ExtensionApi;
use goondan_lock::Lock;
use goondan_oauth_client::{TokenRequest, code};
use tokio::time::Instant;

use crate::app::{App, Grant};
use crate::config::Subject;
use crate::failure::Failure;
use crate::kept::{Granted, Owner};
use crate::server::Server;
use crate::store::{Store, Stored};

/// The tokens of all apps.
pub(crate) struct Tokens {
    pub(crate) api: ExtensionApi,
    pub(crate) apps: BTreeMap<String, Arc<App>>,
    pub(crate) server: Server,
    pub(crate) store: Store,
    attempts: Lock<BTreeMap<(String, Owner), Arc<Attempt>>>,
}

/// Locked while a token is changed. Holds the failure of the last attempt to get one.
type Attempt = tokio::sync::Mutex<Option<(Instant, Failure)>>;

impl Tokens {
    pub(crate) fn new(api: ExtensionApi, apps: BTreeMap<String, App>, server: Server, store: Store) -> Self {
        let apps = apps.into_iter().map(|(name, app)| (name, Arc::new(app))).collect();
        Self { api, apps, server, store, attempts: Lock::default() }
    }

    /// Returns the app of this name, and on whose behalf it acts in the turn of `user`.
    pub(crate) fn find(&self, name: &str, user: Option<String>) -> Result<(Arc<App>, Owner), Failure> {
        let not_found = || Failure::new(code::APP_NOT_FOUND, format!("there is no app `{name}`"));
        let app = self.apps.get(name).ok_or_else(not_found)?;
        let owner = match (app.subject, user) {
            (Subject::Global, _) => Owner::Global,
            (Subject::User, Some(user)) => Owner::User(user),
            (Subject::User, None) => {
                let message = format!("the app `{name}` acts on behalf of a user, and no turn of a user runs");
                return Err(Failure::new(code::SUBJECT_UNAVAILABLE, message));
            }
        };
        Ok((Arc::clone(app), owner))
    }

    /// Returns what is granted, refreshed if necessary; `None` if a person has to sign in.
    pub(crate) async fn granted(
        &self,
        app: &App,
        owner: &Owner,
        request: &TokenRequest,
    ) -> Result<Option<Granted>, Failure> {
        if let Stored::Found(granted) = self.store.load(app, owner)?
            && granted.serves(request)
        {
            return Ok(Some(granted));
        }
        let asked = Instant::now();
        let attempt = self.attempt(app, owner);
        let mut failed = attempt.lock().await;
        match &*failed {
            // It failed while this request waited, and would fail again.
            Some((at, failure)) if *at >= asked => return Err(failure.clone()),
            _ => {}
        }
        let outcome = self.renew(app, owner, request).await;
        *failed = outcome.as_ref().err().map(|failure| (Instant::now(), failure.clone()));
        outcome
    }

    async fn renew(&self, app: &App, owner: &Owner, request: &TokenRequest) -> Result<Option<Granted>, Failure> {
        let _lock = self.store.lock(app, owner).await?;
        // Another request, or another process, may have renewed it until the lock was free.
        let before = match self.store.load(app, owner)? {
            Stored::Found(granted) if granted.serves(request) => return Ok(Some(granted)),
            Stored::Found(granted) => Some(granted),
            Stored::Unreadable if !matches!(app.grant, Grant::ClientCredentials { .. }) => {
                let message = format!("the token of `{}` cannot be read: `store.key` is another one", app.name);
                return Err(Failure { suggestion: "restore the key, or sign in again", ..unusable(message) });
            }
            Stored::Nothing | Stored::Unreadable => None,
        };
        let refresh = before.as_ref().and_then(|granted| {
            let client = app.client(granted.issued_to.as_ref())?;
            Some((granted.refresh.as_ref()?, client))
        });
        let renewed = match (&app.grant, refresh) {
            (Grant::ClientCredentials { client }, _) => {
                let form = [("grant_type", "client_credentials"), ("scope", &app.scopes.join(" "))];
                self.server.token(client, &app.scopes, &form, None).await
            }
            (_, Some((refresh, client))) => {
                let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose())];
                self.server.token(&client, &app.scopes, &form, before.as_ref()).await
            }
            (_, None) => return Ok(before.filter(|granted| granted.is_valid(request))),
        };
        match renewed {
            Ok(granted) => {
                self.store.save(app, owner, Some(&granted))?;
                if before.is_none() {
                    self.tell(app, owner, &granted);
                }
                Ok(Some(granted))
            }
            Err(refusal) if refusal.is("invalid_grant") => {
                // Under the lock, what is kept is what was used.
                self.store.save(app, owner, None)?;
                Err(refusal.failure(app))
            }
            Err(refusal) if refusal.is("invalid_client") && app.registers() => {
                // The server has forgotten the registration, and with it the access.
                self.store.save(app, owner, None)?;
                self.store.register(app, owner, None)?;
                Err(Failure { code: code::TOKEN_REVOKED, ..refusal.failure(app) })
            }
            Err(refusal) => match before.filter(|granted| granted.is_valid(request)) {
                Some(granted) => {
                    self.api.logger().warn(format!("a token is not refreshed yet: {}", refusal.failure(app).message));
                    Ok(Some(granted))
                }
                None => Err(refusal.failure(app)),
            },
        }
    }

    /// Keeps what a person has granted.
    pub(crate) async fn keep(&self, app: &App, owner: &Owner, granted: &Granted) -> Result<(), Failure> {
        let attempt = self.attempt(app, owner);
        let _alone = attempt.lock().await;
        let _lock = self.store.lock(app, owner).await?;
        self.store.save(app, owner, Some(granted))?;
        self.tell(app, owner, granted);
        Ok(())
    }

    // LEGACY-OAUTH-05
    fn tell(&self, app: &App, owner: &Owner, granted: &Granted) {
        let (app, subject, scopes) = (app.name.clone(), owner.to_string(), granted.token.scopes.clone());
        self.api.events().emit(AuthGranted::NAME, (AuthGranted::new(app, subject, scopes),));
    }

    fn attempt(&self, app: &App, owner: &Owner) -> Arc<Attempt> {
        let mut attempts = self.attempts.lock();
        Arc::clone(attempts.entry((app.name.clone(), owner.clone())).or_default())
    }
}

fn unusable(message: String) -> Failure {
    Failure::new(code::CONFIGURATION_ERROR, message)
}
