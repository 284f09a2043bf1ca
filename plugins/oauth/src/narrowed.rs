//! Tokens with fewer scopes than were granted, for requests that name theirs.

use goondan_oauth_client::{TokenRequest, code};

use crate::app::{App, Grant};
use crate::failure::Failure;
use crate::kept::{Granted, NarrowedKey, Owner};
use crate::tokens::Tokens;

fn key(app: &App, owner: &Owner, request: &TokenRequest) -> NarrowedKey {
    let mut scopes = request.scopes.clone();
    scopes.sort_unstable();
    (app.name.clone(), owner.clone(), scopes)
}

impl Tokens {
    /// Returns a narrowed token of before, as long as it serves. They are in memory alone.
    pub(crate) fn kept_narrowed(&self, app: &App, owner: &Owner, request: &TokenRequest) -> Option<Granted> {
        let kept = self.narrowed.lock();
        kept.get(&key(app, owner, request)).filter(|granted| granted.serves(request)).cloned()
    }

    /// Forgets the narrowed tokens of an access that has ended, or was granted anew.
    pub(crate) fn forget_narrowed(&self, app: &App, owner: &Owner) {
        self.narrowed.lock().retain(|(name, of, _), _| (name, of) != (&app.name, owner));
    }

    /// Gets a token with the scopes of the request alone: RFC 6749, 4.4.2 and 6. The grant stays as it is.
    pub(crate) async fn narrow(
        &self,
        app: &App,
        owner: &Owner,
        request: &TokenRequest,
        before: Option<&Granted>,
    ) -> Result<Granted, Failure> {
        let (scope, scopes) = (request.scopes.join(" "), &request.scopes);
        let refresh = before.and_then(|granted| {
            let client = app.client(granted.issued_to.as_ref())?;
            Some((granted.refresh.as_ref()?, client))
        });
        let narrowed = match (&app.grant, refresh) {
            (Grant::ClientCredentials { client }, _) => {
                let form = [("grant_type", "client_credentials"), ("scope", &scope)];
                self.server.token(client, scopes, &form, None).await
            }
            (_, Some((refresh, client))) => {
                let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.expose()), ("scope", &scope)];
                self.server.token(&client, scopes, &form, None).await
            }
            (_, None) => return Err(too_wide(app, request)),
        };
        let mut narrowed = match narrowed {
            Ok(narrowed) => narrowed,
            Err(refusal) => return Err(self.refused(app, owner, &refusal)?),
        };
        // The server may have replaced the refresh token, which is for the whole access.
        if let (Some(before), refresh @ Some(_)) = (before, narrowed.refresh.take()) {
            self.store.save(app, owner, Some(&Granted { refresh, ..before.clone() }))?;
        }
        if narrowed.exceeds(request) {
            return Err(too_wide(app, request));
        }
        self.narrowed.lock().insert(key(app, owner, request), narrowed.clone());
        Ok(narrowed)
    }
}

fn too_wide(app: &App, request: &TokenRequest) -> Failure {
    let message = format!("the app `{}` gets no token for `{}` alone", app.name, request.scopes.join(" "));
    let suggestion = "add an app to the config of the extension `oauth` that has these scopes alone";
    Failure { suggestion, ..Failure::new(code::SCOPE_NOT_ALLOWED, message) }
}
