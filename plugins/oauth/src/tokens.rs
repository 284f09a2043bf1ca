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
use crate::kept::{Granted, NarrowedKey, Owner, exceeds};
use crate::server::{Refusal, Server};
use crate::store::{Store, Stored};

/// The tokens of all apps.
pub(crate) struct Tokens {
    pub(crate) api: ExtensionApi,
    pub(crate) apps: BTreeMap<String, Arc<App>>,
    pub(crate) server: Server,
    pub(crate) store: Store,
    pub(crate) narrowed: Lock<BTreeMap<NarrowedKey, Granted>>,
    attempts: Lock<BTreeMap<(String, Owner), Arc<Attempt>>>,
}

/// Locked while a token is changed. Holds the failure of the last attempt to get one.
type Attempt = tokio::sync::Mutex<Option<(Instant, Failure)>>;

impl Tokens {
    pub(crate) fn new(api: ExtensionApi, apps: BTreeMap<String, App>, server: Server, store: Store) -> Self {
        let apps = apps.into_iter().map(|(name, app)| (name, Arc::new(app))).collect();
        Self { api, apps, server, store, narrowed: Lock::default(), attempts: Lock::default() }
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

    /// Returns the granted token, refreshed if necessary, with the scopes of the request alone if it names some;
    /// `None` if a person has to sign in.
    pub(crate) async fn granted(
        &self,
        app: &App,
        owner: &Owner,
        request: &TokenRequest,
    ) -> Result<Option<Granted>, Failure> {
        match self.store.load(app, owner)? {
            Stored::Found(granted) if !granted.exceeds(request) && granted.serves(request) => return Ok(Some(granted)),
            // There is none without an access.
            Stored::Nothing | Stored::Unreadable if !acts_for_itself(app) => {}
            _ => {
                if let Some(granted) = self.kept_narrowed(app, owner, request) {
                    return Ok(Some(granted));
                }
            }
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
            Stored::Found(granted) if !granted.exceeds(request) && granted.serves(request) => return Ok(Some(granted)),
            Stored::Found(granted) => Some(granted),
            Stored::Unreadable if !acts_for_itself(app) => {
                let message = format!("the token of `{}` cannot be read: `store.key` is another one", app.name);
                return Err(Failure { suggestion: "restore the key, or sign in again", ..unusable(message) });
            }
            Stored::Nothing | Stored::Unreadable => None,
        };
        let is_narrow = match &before {
            Some(granted) => granted.exceeds(request),
            None => acts_for_itself(app) && exceeds(&app.scopes, request),
        };
        if is_narrow {
            let narrowed = match self.kept_narrowed(app, owner, request) {
                Some(narrowed) => narrowed,
                None => self.narrow(app, owner, request, before.as_ref()).await?,
            };
            return Ok(Some(narrowed));
        }
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
            Err(refusal) => {
                let failure = self.refused(app, owner, &refusal)?;
                let ended = refusal.is("invalid_grant") || failure.code == code::TOKEN_REVOKED;
                match before.filter(|granted| !ended && granted.is_valid(request)) {
                    Some(granted) => {
                        self.api.logger().warn(format!("a token is not refreshed yet: {}", failure.message));
                        Ok(Some(granted))
                    }
                    None => Err(failure),
                }
            }
        }
    }

    /// Returns the failure for a refusal of the server. If it says that the access has ended, the stored token is
    /// removed.
    pub(crate) fn refused(&self, app: &App, owner: &Owner, refusal: &Refusal) -> Result<Failure, Failure> {
        if refusal.is("invalid_grant") {
            // Under the lock, the stored token is the used one.
            self.store.save(app, owner, None)?;
            self.forget_narrowed(app, owner);
        } else if refusal.is("invalid_client") && app.registers() {
            // The server has forgotten the registration, and with it the access.
            self.store.save(app, owner, None)?;
            self.store.register(app, owner, None)?;
            self.forget_narrowed(app, owner);
            return Ok(Failure { code: code::TOKEN_REVOKED, ..refusal.failure(app) });
        }
        Ok(refusal.failure(app))
    }

    /// Keeps the grant of a person.
    pub(crate) async fn keep(&self, app: &App, owner: &Owner, granted: &Granted) -> Result<(), Failure> {
        let attempt = self.attempt(app, owner);
        let _alone = attempt.lock().await;
        let _lock = self.store.lock(app, owner).await?;
        self.store.save(app, owner, Some(granted))?;
        self.forget_narrowed(app, owner);
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

/// Returns whether no person has to sign in.
fn acts_for_itself(app: &App) -> bool {
    matches!(app.grant, Grant::ClientCredentials { .. })
}

fn unusable(message: String) -> Failure {
    Failure::new(code::CONFIGURATION_ERROR, message)
}
